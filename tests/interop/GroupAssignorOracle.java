import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * What the assignors of Kafka 0.10.2.2's consumer give to the members that stdin lists; see
 * group_assignor_oracle.py.
 *
 * A line is one of these, its parts separated by tabs:
 *   topic NAME PARTITIONS
 *   member ID TOPIC...
 *   assign STRATEGY     answered by one line "member topic partition" for each partition, in the
 *                       order of the member's list, then "end"; forgets topics and members
 */
public class GroupAssignorOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        Map<String, Integer> topics = new HashMap<>();
        Map<String, List<String>> members = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "topic":
                    topics.put(words[1], Integer.valueOf(words[2]));
                    break;
                case "member":
                    members.put(
                        words[1],
                        new ArrayList<>(Arrays.asList(words).subList(2, words.length)));
                    break;
                default:
                    answer(out, assignor(words[1]).assign(topics, members));
                    topics.clear();
                    members.clear();
            }
        }
    }

    private static AbstractPartitionAssignor assignor(String strategy) {
        return strategy.equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
    }

    private static void answer(PrintStream out, Map<String, List<TopicPartition>> assignment) {
        for (Map.Entry<String, List<TopicPartition>> one : assignment.entrySet()) {
            for (TopicPartition tp : one.getValue()) {
                out.println(one.getKey() + "\t" + tp.topic() + "\t" + tp.partition());
            }
        }
        out.println("end");
        out.flush();
    }
}
