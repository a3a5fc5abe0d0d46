import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;

import org.apache.kafka.common.protocol.Protocol;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;

/**
 * Reads lines "request|response key version hex-of-body" and answers each with the body as the schema of Kafka's own
 * client library reads and writes it again, or with "error" and the reason.
 */
public class LayoutOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
            System.out.flush();
        }
    }

    private static String answer(String[] words) {
        Schema[][] schemas = words[0].equals("request") ? Protocol.REQUESTS : Protocol.RESPONSES;
        Schema schema = schemas[Integer.parseInt(words[1])][Integer.parseInt(words[2])];
        ByteBuffer body = ByteBuffer.wrap(bytes(words[3]));
        try {
            Struct struct = (Struct) schema.read(body);
            ByteBuffer written = ByteBuffer.allocate(struct.sizeOf());
            struct.writeTo(written);
            return body.hasRemaining() ? "error " + body.remaining() + " bytes left" : hex(written.array());
        } catch (RuntimeException e) {
            return "error " + e;
        }
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++)
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        return bytes;
    }

    private static String hex(byte[] bytes) {
        StringBuilder hex = new StringBuilder();
        for (byte b : bytes)
            hex.append(String.format("%02x", b));
        return hex.toString();
    }
}
