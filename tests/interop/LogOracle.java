import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Properties;

import kafka.log.Log;
import kafka.log.LogAppendInfo;
import kafka.log.LogConfig;
import kafka.utils.KafkaScheduler;
import org.apache.kafka.common.record.MemoryRecords;
import kafka.log.TimestampOffset;
import org.apache.kafka.common.utils.Time;

/**
 * One log of Kafka's own at a time, with a clock that the caller sets. Reads lines and answers each with one:
 * "open directory recovery-point key=value...", "append now hex", "follow now hex", "find timestamp", "truncate offset",
 * "retain now", "close". An error is "error" and the name of its class.
 */
public class LogOracle {
    private static final KafkaScheduler SCHEDULER = new KafkaScheduler(1, "oracle-", true);
    private static long now = 0;
    private static Log log = null;

    private static final Time CLOCK = new Time() {
        public long milliseconds() { return now; }
        public long hiResClockMs() { return now; }
        public long nanoseconds() { return now * 1000000; }
        public void sleep(long ms) { now += ms; }
    };

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (Exception e) {
                answer = "error " + e.getClass().getSimpleName() + " " + String.valueOf(e.getMessage()).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String answer(String[] words) {
        switch (words[0]) {
            case "open":
                Properties settings = new Properties();
                for (int i = 3; i < words.length; i++)
                    settings.put(words[i].split("=", 2)[0], words[i].split("=", 2)[1]);
                log = new Log(new File(words[1]), new LogConfig(settings), Long.parseLong(words[2]), SCHEDULER, CLOCK);
                return "ok " + log.logEndOffset();
            case "append":
            case "follow":
                now = Long.parseLong(words[1]);
                MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(words.length > 2 ? words[2] : "")));
                LogAppendInfo info = log.append(records, words[0].equals("append"));
                return "ok " + info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime();
            case "find":
                scala.Option<TimestampOffset> found = log.fetchOffsetsByTimestamp(Long.parseLong(words[1]));
                return found.isEmpty() ? "ok" : "ok " + found.get().timestamp() + " " + found.get().offset();
            case "truncate":
                log.truncateTo(Long.parseLong(words[1]));
                return "ok " + log.logEndOffset();
            case "retain":
                now = Long.parseLong(words[1]);
                return "ok " + log.deleteOldSegments();
            case "close":
                log.close();
                return "ok";
            default:
                return "error " + words[0];
        }
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++)
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        return bytes;
    }
}
