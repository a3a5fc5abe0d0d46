import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/**
 * The Java producer and the consumer of a group, as foreign_clients.py says. Compiles with
 * kafka-clients 0.9.0.1 to 4.4. Further arguments are KEY=VALUE of their configuration.
 */
public class JavaClient {
    public static void main(String[] args) throws Exception {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", args[1]);
        int own = args[0].equals("produce") ? 6 : 5;
        for (int i = own; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            keys.put(pair[0], pair[1]);
        }
        if (args[0].equals("produce")) {
            keys.put("compression.type", args[3]);
            produce(keys, args[2], Integer.parseInt(args[4]), Integer.parseInt(args[5]));
        } else {
            keys.put("group.id", args[3]);
            consume(keys, args[2], Integer.parseInt(args[4]));
        }
    }

    private static void produce(Properties keys, String topic, int first, int count)
            throws Exception {
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        keys.put("key.serializer", serializer);
        keys.put("value.serializer", serializer);
        KafkaProducer<String, String> producer = new KafkaProducer<String, String>(keys);
        List<Future<RecordMetadata>> sent = new ArrayList<Future<RecordMetadata>>();
        for (int n = first; n < first + count; n++) {
            sent.add(producer.send(new ProducerRecord<String, String>(topic, "k" + n, "" + n)));
        }
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        producer.close();
        say("sent " + count);
    }

    private static void consume(Properties keys, String topic, int count) throws Exception {
        String deserializer = "org.apache.kafka.common.serialization.StringDeserializer";
        keys.put("key.deserializer", deserializer);
        keys.put("value.deserializer", deserializer);
        keys.put("auto.offset.reset", "earliest");
        final KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(keys);
        final AtomicBoolean stopped = new AtomicBoolean();
        final Thread main = Thread.currentThread();
        Thread hook = new Thread() {
            public void run() {
                stopped.set(true);
                consumer.wakeup();
                try {
                    main.join();
                } catch (InterruptedException e) {
                    say("interrupted");
                }
            }
        };
        Runtime.getRuntime().addShutdownHook(hook);
        consumer.subscribe(Arrays.asList(topic), new ConsumerRebalanceListener() {
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say("assigned " + partitions.size());
            }
        });
        int seen = 0;
        try {
            while (!stopped.get() && (count == 0 || seen < count)) {
                ConsumerRecords<String, String> records = poll(consumer);
                for (ConsumerRecord<String, String> record : records) {
                    say("message " + record.partition() + " " + record.offset() + " "
                            + record.key() + " " + record.value() + " " + timestamp(record));
                    seen++;
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                    say("committed " + seen);
                }
            }
        } catch (WakeupException e) {
            // stopped
        }
        consumer.close();
        say("left");
    }

    /** `poll(long)`, which 4.0 has no more; it has `poll(Duration)`, as 2.0 and later. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer)
            throws Exception {
        try {
            try {
                Method poll = KafkaConsumer.class.getMethod("poll", Duration.class);
                return (ConsumerRecords<String, String>) poll.invoke(consumer, Duration.ofMillis(100));
            } catch (NoSuchMethodException e) {
                Method poll = KafkaConsumer.class.getMethod("poll", long.class);
                return (ConsumerRecords<String, String>) poll.invoke(consumer, 100L);
            }
        } catch (InvocationTargetException e) {
            throw (RuntimeException) e.getCause();
        }
    }

    /** Milliseconds; - for a client that knows no timestamps. */
    private static String timestamp(ConsumerRecord<String, String> record) throws Exception {
        try {
            return "" + ConsumerRecord.class.getMethod("timestamp").invoke(record);
        } catch (NoSuchMethodException e) {
            return "-";
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
