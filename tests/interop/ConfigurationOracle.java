import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;

import kafka.log.LogConfig;
import kafka.server.KafkaConfig;

/**
 * Reads lines "broker|topic key=value ..." and answers each with "taken", or with "refused" and the reason: what
 * Kafka's own configuration of a broker, or of a topic, says of these pairs. Blanks in a value are written as tabs.
 */
public class ConfigurationOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
            System.out.flush();
        }
    }

    private static String answer(String[] words) {
        Properties pairs = new Properties();
        for (int i = 1; i < words.length; i++) {
            int end = words[i].indexOf('=');
            pairs.put(words[i].substring(0, end), words[i].substring(end + 1).replace('\t', ' '));
        }
        try {
            if (words[0].equals("topic"))
                LogConfig.validate(pairs);
            else
                KafkaConfig.fromProps(pairs);
            return "taken";
        } catch (RuntimeException e) {
            return "refused " + e.getMessage().replace('\n', ' ');
        }
    }
}
