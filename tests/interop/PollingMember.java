import java.io.PrintStream;
import java.util.Collection;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group by the KafkaConsumer of 0.10.2.2: TOPIC key=value...
 *
 * Prints lines as tests/integration/librdkafka_member.py, with 0 for the time, then commits what it
 * printed. Leaves the group when stdin ends.
 */
public class PollingMember {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        for (int i = 1; i < args.length; i++) {
            int end = args[i].indexOf('=');
            properties.setProperty(args[i].substring(0, end), args[i].substring(end + 1));
        }
        final PrintStream out = System.out;
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(
            Collections.singletonList(args[0]),
            new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    out.println("0 assigned " + partitions.size());
                    out.flush();
                }
            });
        while (System.in.available() == 0) {
            for (ConsumerRecord<String, String> record : consumer.poll(100)) {
                out.println(
                    "0 message " + record.partition() + " " + record.offset() + " " + record.value());
            }
            out.flush();
            consumer.commitSync();
        }
        consumer.close();
    }
}
