// A suite in Java that breaks requests to a local cluster by rule, with Kafka's own client:
//
//     kafka08 up --detach --control 127.0.0.1:0 && eval "$(kafka08 status --env)"
//     java -cp 'kafka-clients.jar:slf4j-api.jar:…' FaultsTest.java

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class FaultsTest {
    private static final String TOPIC = "java-" + ProcessHandle.current().pid();
    private static final String BROKERS = System.getenv("KAFKA08_BOOTSTRAP");

    public static void main(String[] arguments) throws Exception {
        ask("POST", "/topics", "{\"name\": \"%s\", \"replication_factor\": 2}");
        try (KafkaProducer<String, String> producer = producer()) {
            anErrorIsTriedAgain(producer);
            aLostAcknowledgementMakesADuplicate(producer);
            anotherBrokerLeadsWhenTheLeaderDies(producer);
        } finally {
            ask("POST", "/heal", "{}");
        }
        System.out.println("3 tests passed");
    }

    private static void anErrorIsTriedAgain(KafkaProducer<String, String> producer)
            throws Exception {
        String rule = ask("POST", "/faults", "{\"api\": \"Produce\", \"topic\": \"%s\", "
                + "\"error\": \"NOT_ENOUGH_REPLICAS\", \"times\": 2}");
        producer.send(new ProducerRecord<>(TOPIC, "once")).get();
        check(2, number("hits", ask("DELETE", "/faults/" + number("number", rule), "{}")));
        check(1, stored());
    }

    private static void aLostAcknowledgementMakesADuplicate(
            KafkaProducer<String, String> producer) throws Exception {
        ask("POST", "/faults", "{\"api\": \"Produce\", \"topic\": \"%s\", "
                + "\"close\": \"after\", \"times\": 1}");
        producer.send(new ProducerRecord<>(TOPIC, "twice")).get();
        check(3, stored());
    }

    private static void anotherBrokerLeadsWhenTheLeaderDies(
            KafkaProducer<String, String> producer) throws Exception {
        long leader = number("leader", ask("POST", "/wait/leader", "{\"topic\": \"%s\"}"));
        ask("POST", "/wait/isr", "{\"topic\": \"%s\"}");
        ask("POST", "/brokers/" + leader + "/kill", "{\"expire\": true}");
        ask("POST", "/wait/leader", "{\"topic\": \"%s\", \"other_than\": " + leader + "}");
        producer.send(new ProducerRecord<>(TOPIC, "after")).get();
        check(4, stored());
    }

    /** A producer that sends again, and may store twice what it sends again. */
    private static KafkaProducer<String, String> producer() {
        Map<String, Object> keys = Map.of(
                "bootstrap.servers", BROKERS, "acks", "all", "retries", 50,
                "retry.backoff.ms", 20, "enable.idempotence", false);
        return new KafkaProducer<>(keys, new StringSerializer(), new StringSerializer());
    }

    /** How many messages the topic has. */
    private static long stored() {
        TopicPartition partition = new TopicPartition(TOPIC, 0);
        Map<String, Object> keys = Map.of("bootstrap.servers", BROKERS);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                keys, new StringDeserializer(), new StringDeserializer())) {
            return consumer.endOffsets(List.of(partition)).get(partition);
        }
    }

    /** What the cluster says to a request, as JSON; %s in the body stands for the topic. */
    private static String ask(String method, String path, String body) throws Exception {
        String token = Files.readString(Path.of(System.getenv("KAFKA08_CONTROL_TOKEN_FILE")));
        HttpRequest request = HttpRequest.newBuilder()
                .uri(URI.create(System.getenv("KAFKA08_CONTROL") + path))
                .header("Authorization", "Bearer " + token.strip())
                .method(method, HttpRequest.BodyPublishers.ofString(body.replace("%s", TOPIC)))
                .build();
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new AssertionError(method + " " + path + ": " + response.body());
        }
        return response.body();
    }

    /** The number of that name in a JSON object. */
    private static long number(String name, String json) {
        Matcher found = Pattern.compile("\"" + name + "\": (-?\\d+)").matcher(json);
        if (!found.find()) {
            throw new AssertionError(json + " has no " + name);
        }
        return Long.parseLong(found.group(1));
    }

    private static void check(long wanted, long seen) {
        if (wanted != seen) {
            throw new AssertionError(seen + " instead of " + wanted);
        }
    }
}
