import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.common.TopicAndPartition;
import kafka.consumer.AssignmentContext;
import kafka.consumer.ConsumerThreadId;
import kafka.consumer.PartitionAssignor$;
import kafka.utils.ZKStringSerializer$;
import org.I0Itec.zkclient.IZkConnection;
import org.I0Itec.zkclient.ZkClient;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * What Kafka 0.8.2.2's own assignors make of the znodes that stdin lists; see assignor_oracle.py.
 *
 * A line is one of these, its parts separated by tabs:
 *   node PATH TEXT               a znode
 *   assign STRATEGY GROUP ID     answered by one line "topic partition thread" for each partition of
 *                                that member, then "end"; or by "error CLASS"
 *   clear                        no znodes any more
 */
public class AssignorOracle {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Znodes znodes = new Znodes();
        ZkClient client = new ZkClient(znodes, 10000, ZKStringSerializer$.MODULE$);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] part = line.split("\t");
            switch (part[0]) {
                case "node": znodes.texts.put(part[1], part[2]); break;
                case "clear": znodes.texts.clear(); break;
                default: answer(out, client, part[1], part[2], part[3]); out.flush();
            }
        }
    }

    private static void answer(PrintStream out, ZkClient client, String strategy, String group, String id) {
        scala.collection.Map<TopicAndPartition, ConsumerThreadId> found;
        try {
            AssignmentContext context = new AssignmentContext(group, id, true, client);
            found = PartitionAssignor$.MODULE$.createInstance(strategy).assign(context);
        } catch (Exception error) {
            out.println("error\t" + error.getClass().getName());
            return;
        }
        for (Map.Entry<TopicAndPartition, ConsumerThreadId> entry
                : scala.collection.JavaConversions.mapAsJavaMap(found).entrySet()) {
            TopicAndPartition at = entry.getKey();
            out.println(at.topic() + "\t" + at.partition() + "\t" + entry.getValue());
        }
        out.println("end");
    }

    /** ZooKeeper as ZkClient sees it, read only, in memory. */
    private static class Znodes implements IZkConnection {
        final TreeMap<String, String> texts = new TreeMap<>();

        public void connect(Watcher watcher) {
            WatchedEvent connected = new WatchedEvent(
                Watcher.Event.EventType.None, Watcher.Event.KeeperState.SyncConnected, null);
            new Thread(() -> watcher.process(connected)).start();
        }

        public List<String> getChildren(String path, boolean watch) throws KeeperException {
            TreeSet<String> names = new TreeSet<>();
            for (String known : texts.keySet()) {
                if (known.startsWith(path + "/")) {
                    names.add(known.substring(path.length() + 1).split("/")[0]);
                }
            }
            if (names.isEmpty()) throw new KeeperException.NoNodeException(path);
            return new ArrayList<>(names);
        }

        public byte[] readData(String path, Stat stat, boolean watch) throws KeeperException {
            String text = texts.get(path);
            if (text == null) throw new KeeperException.NoNodeException(path);
            return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }

        public boolean exists(String path, boolean watch) { return texts.containsKey(path); }
        public ZooKeeper.States getZookeeperState() { return ZooKeeper.States.CONNECTED; }
        public long getCreateTime(String path) { return 0; }
        public String getServers() { return "memory"; }
        public void close() { }
        public String create(String path, byte[] data, CreateMode mode) { throw new AssertionError(path); }
        public void delete(String path) { throw new AssertionError(path); }
        public void writeData(String path, byte[] data, int version) { throw new AssertionError(path); }
        public Stat writeDataReturnStat(String path, byte[] data, int version) { throw new AssertionError(path); }
    }
}
