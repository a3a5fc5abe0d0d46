import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * Sends transactions, and writes what tests/histories/transactional_member.py writes: BOOTSTRAP NAME
 * SESSION SEED TIMEOUT_MS TOPIC PARTITIONS TRANSACTIONS (0: until SIGTERM). Compiles with
 * kafka-clients 0.11.0.3 to 3.9.
 */
public class TransactionalMember {
    private static final String TEXT = "org.apache.kafka.common.serialization.String";
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    private static volatile boolean told = false;

    public static void main(String[] args) throws Exception {
        final Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread() {
            public void run() {
                told = true;
                try {
                    main.join();
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        try {
            run(args);
        } catch (KafkaException e) {
            say("\"ends\", \"" + e.toString().replace('"', '\'').replace('\n', ' ') + "\"");
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(String[] args) throws Exception {
        String prefix = args[1] + "/" + args[2];
        Random random = new Random((args[3] + prefix).hashCode());
        String topic = args[5];
        int partitions = Integer.parseInt(args[6]), wanted = Integer.parseInt(args[7]);
        KafkaProducer<String, String> producer = producer(args[0], args[1], args[4]);
        say("\"initializing\"");
        producer.initTransactions();
        say("\"initialized\"");
        int values = 0;
        for (int done = 0; !told && (wanted == 0 || done < wanted); done++) {
            say("\"begin\"");
            producer.beginTransaction();
            boolean mayCommit = random.nextDouble() >= 0.15;
            try {
                for (int left = 1 + random.nextInt(12); left > 0; left--) {
                    int partition = random.nextInt(partitions);
                    String value = prefix + " " + ++values;
                    say("\"send\", \"" + topic + "\", " + partition + ", \"" + value + "\"");
                    producer.send(new ProducerRecord<String, String>(topic, partition, null, value));
                }
                Thread.sleep(random.nextInt(300));
                if (mayCommit) {
                    say("\"committing\"");
                    producer.commitTransaction();
                    say("\"committed\"");
                    continue;
                }
            } catch (ProducerFencedException e) {
                throw e;
            } catch (TimeoutException e) { // nobody knows the outcome
                throw e;
            } catch (KafkaException e) {
                say("\"failed\", \"\"");
            }
            producer.abortTransaction();
            say("\"aborted\"");
        }
    }

    private static KafkaProducer<String, String> producer(
            String bootstrap, String name, String timeoutMs) {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", bootstrap);
        keys.put("transactional.id", name);
        keys.put("transaction.timeout.ms", timeoutMs);
        keys.put("request.timeout.ms", "3000");
        keys.put("max.block.ms", "40000");
        keys.put("linger.ms", "2");
        keys.put("delivery.timeout.ms", "20000");
        keys.put("key.serializer", TEXT + "Serializer");
        keys.put("value.serializer", TEXT + "Serializer");
        return new KafkaProducer<String, String>(keys);
    }

    private static void say(String words) throws IOException {
        String line = "[" + System.nanoTime() / 1e9 + ", " + words + "]\n";
        OUT.write(line.getBytes(StandardCharsets.UTF_8));
    }
}
