import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

/**
 * What the Java producer does in transactions: BOOTSTRAP TOPIC, a topic of two partitions. Writes a
 * line for each step. Compiles with kafka-clients 0.11.0.3 to 3.9.
 */
public class JavaTransactions {
    private static final String TEXT = "org.apache.kafka.common.serialization.String";

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1];
        KafkaProducer<String, String> first = producer(bootstrap, topic);
        for (int n = 0; n < 50; n++) {
            first.beginTransaction();
            send(first, topic, "c" + n);
            first.commitTransaction();
            first.beginTransaction();
            send(first, topic, "a" + n);
            first.flush();
            first.abortTransaction();
        }
        System.out.println("read " + read(bootstrap, topic));
        first.beginTransaction();
        offsets(first, topic, 7);
        first.abortTransaction();
        System.out.println("aborted offset " + committed(bootstrap, topic));
        first.beginTransaction();
        offsets(first, topic, 8);
        first.commitTransaction();
        // A commit returns once it is decided: the marker of the group's partition comes after it.
        long end = System.currentTimeMillis() + 30000;
        while (committed(bootstrap, topic).equals("none") && System.currentTimeMillis() < end) {
            Thread.sleep(10);
        }
        System.out.println("committed offset " + committed(bootstrap, topic));
        first.beginTransaction();
        send(first, topic, "open");
        first.flush();
        KafkaProducer<String, String> second = producer(bootstrap, topic);
        try {
            first.commitTransaction();
            System.out.println("not fenced");
        } catch (ProducerFencedException e) {
            System.out.println("fenced");
        } catch (KafkaException e) {
            System.out.println("fenced as " + e);
        }
        first.close();
        second.beginTransaction();
        send(second, topic, "d");
        second.commitTransaction();
        second.close();
        System.out.println("read " + read(bootstrap, topic));
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String name) {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", bootstrap);
        keys.put("transactional.id", name);
        keys.put("key.serializer", TEXT + "Serializer");
        keys.put("value.serializer", TEXT + "Serializer");
        KafkaProducer<String, String> made = new KafkaProducer<String, String>(keys);
        made.initTransactions();
        return made;
    }

    private static void send(KafkaProducer<String, String> to, String topic, String value) {
        to.send(new ProducerRecord<String, String>(topic, 0, "k", value));
        to.send(new ProducerRecord<String, String>(topic, 1, "k", value));
    }

    private static void offsets(KafkaProducer<String, String> of, String topic, long offset) {
        of.sendOffsetsToTransaction(Collections.singletonMap(
                new TopicPartition(topic, 0), new OffsetAndMetadata(offset)), topic);
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", bootstrap);
        keys.put("group.id", group);
        keys.put("isolation.level", "read_committed");
        keys.put("enable.auto.commit", "false");
        keys.put("key.deserializer", TEXT + "Deserializer");
        keys.put("value.deserializer", TEXT + "Deserializer");
        return new KafkaConsumer<String, String>(keys);
    }

    /** How many values begin with each letter, and whether they are in the order of sending. */
    private static String read(String bootstrap, String topic) {
        List<TopicPartition> parts = new ArrayList<TopicPartition>();
        parts.add(new TopicPartition(topic, 0));
        parts.add(new TopicPartition(topic, 1));
        KafkaConsumer<String, String> consumer = consumer(bootstrap, "reader");
        consumer.assign(parts);
        consumer.seekToBeginning(parts);
        List<List<String>> values = new ArrayList<List<String>>();
        values.add(new ArrayList<String>());
        values.add(new ArrayList<String>());
        long end = System.currentTimeMillis() + 30000;
        while (System.currentTimeMillis() < end && !atEnd(consumer, parts)) {
            for (ConsumerRecord<String, String> record : consumer.poll(200)) {
                values.get(record.partition()).add(record.value());
            }
        }
        boolean atEnd = atEnd(consumer, parts);
        consumer.close();
        List<String> wanted = new ArrayList<String>();
        for (int n = 0; n < 50; n++) {
            wanted.add("c" + n);
        }
        if (values.get(0).size() > 50) {
            wanted.add("d");
        }
        boolean same = values.get(0).equals(wanted) && values.get(1).equals(wanted);
        return values.get(0).size() + " " + values.get(1).size() + " " + same + " " + atEnd;
    }

    private static boolean atEnd(
            KafkaConsumer<String, String> consumer, List<TopicPartition> parts) {
        for (TopicPartition part : parts) {
            if (consumer.position(part) < consumer.endOffsets(parts).get(part)) {
                return false;
            }
        }
        return true;
    }

    private static String committed(String bootstrap, String topic) {
        KafkaConsumer<String, String> consumer = consumer(bootstrap, topic);
        OffsetAndMetadata found = consumer.committed(new TopicPartition(topic, 0));
        consumer.close();
        return found == null ? "none" : "" + found.offset();
    }
}
