import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the values of a topic by their last digit into another one, through a repartition topic
 * and a changelog, until SIGTERM: BOOTSTRAP FROM TO STATE_DIRECTORY.
 */
public class JavaStreams {
    public static void main(String[] args) {
        Properties keys = new Properties();
        keys.put("application.id", "count-" + args[1]);
        keys.put("bootstrap.servers", args[0]);
        keys.put("state.dir", args[3]);
        keys.put("replication.factor", "1");
        keys.put("commit.interval.ms", "100");
        keys.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[1], Consumed.with(Serdes.String(), Serdes.String()))
                .map((key, value) -> new KeyValue<>(value.substring(value.length() - 1), value))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                        .withKeySerde(Serdes.String())
                        .withValueSerde(Serdes.Long()))
                .toStream()
                .mapValues(count -> count.toString())
                .to(args[2], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), keys);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
