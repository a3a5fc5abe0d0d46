import java.io.PrintStream;
import java.util.Collections;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.message.MessageAndMetadata;

/**
 * A member of a group by Kafka 0.8.2.2's own high-level consumer: TOPIC key=value...
 *
 * Prints "ready", then "partition offset" for each message before it asks for the next one, as
 * member_process.py does. SIGINT and SIGTERM have it commit and leave.
 */
public class JvmMember {
    public static void main(String[] args) {
        Properties properties = new Properties();
        for (int i = 1; i < args.length; i++) {
            int end = args[i].indexOf('=');
            properties.setProperty(args[i].substring(0, end), args[i].substring(end + 1));
        }
        ConsumerConnector connector =
            Consumer.createJavaConsumerConnector(new ConsumerConfig(properties));
        Runtime.getRuntime().addShutdownHook(new Thread(connector::shutdown));
        ConsumerIterator<byte[], byte[]> messages =
            connector
                .createMessageStreams(Collections.singletonMap(args[0], 1))
                .get(args[0])
                .get(0)
                .iterator();
        PrintStream out = System.out;
        out.println("ready");
        while (messages.hasNext()) {
            MessageAndMetadata<byte[], byte[]> message = messages.next();
            out.println(message.partition() + " " + message.offset());
            out.flush();
        }
    }
}
