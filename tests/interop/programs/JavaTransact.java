import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Transactions of the Java producer, as foreign_clients.py says. For kafka-clients from 0.11 on. */
public class JavaTransact {
    public static void main(String[] args) throws Exception {
        int first = Integer.parseInt(args[3]), count = Integer.parseInt(args[4]);
        Properties keys = new Properties();
        keys.put("bootstrap.servers", args[1]);
        keys.put("transactional.id", args[2]);
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        keys.put("key.serializer", serializer);
        keys.put("value.serializer", serializer);
        KafkaProducer<String, String> producer = new KafkaProducer<String, String>(keys);
        producer.initTransactions();
        producer.beginTransaction();
        send(producer, args[2], first, count);
        producer.abortTransaction();
        System.out.println("aborted " + count);
        producer.beginTransaction();
        send(producer, args[2], first, count);
        producer.commitTransaction();
        System.out.println("committed " + count);
        producer.close();
    }

    private static void send(
            KafkaProducer<String, String> producer, String topic, int first, int count)
            throws Exception {
        List<Future<?>> sent = new ArrayList<Future<?>>();
        for (int n = first; n < first + count; n++) {
            sent.add(producer.send(new ProducerRecord<String, String>(topic, "k" + n, "" + n)));
        }
        for (Future<?> one : sent) {
            one.get();
        }
    }
}
