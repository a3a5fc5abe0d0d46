import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** joining_member.py, by the KafkaConsumer of 0.10.2.2. */
public class JoiningMember {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        for (int i = 1; i < args.length; i++) {
            int end = args[i].indexOf('=');
            properties.setProperty(args[i].substring(0, end), args[i].substring(end + 1));
        }
        LinkedBlockingQueue<String> words = new LinkedBlockingQueue<>();
        Thread reader =
            new Thread(
                () -> {
                    try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                        for (String line = in.readLine(); line != null; line = in.readLine()) {
                            words.add(line);
                        }
                    } catch (java.io.IOException ended) {
                        // as at the end of stdin
                    }
                    words.add("end");
                });
        reader.setDaemon(true);
        reader.start();
        while (words.take().equals("join")) {
            say("joining");
            KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(
                    properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(
                Collections.singletonList(args[0]),
                new ConsumerRebalanceListener() {
                    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        say("assigned " + partitions.size());
                    }
                });
            while (words.peek() == null) {
                consumer.poll(100);
            }
            words.take();
            say("leaving");
            consumer.close();
            say("left");
        }
    }

    static void say(String what) {
        System.out.println(System.nanoTime() / 1e9 + " " + what);
        System.out.flush();
    }
}
