import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** What the Java admin client does with topics and groups, as foreign_clients.py says. */
public class JavaAdmin {
    public static void main(String[] args) throws Exception {
        Properties keys = new Properties();
        keys.put("bootstrap.servers", args[1]);
        String topic = args[2], group = args[3];
        try (Admin admin = Admin.create(keys)) {
            admin.createTopics(Arrays.asList(new NewTopic(topic, 2, (short) 1))).all().get();
            System.out.println("created " + topic);
            while (!admin.listTopics().names().get().contains(topic)) {
                TimeUnit.MILLISECONDS.sleep(100);
            }
            System.out.println("listed " + topic);
            admin.listConsumerGroups().all().get().stream().map(g -> g.groupId())
                    .filter(group::equals).forEach(g -> System.out.println("group " + g));
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            System.out.println("state " + described.state() + " " + described.members().size());
            admin.deleteTopics(Arrays.asList(topic)).all().get();
            System.out.println("deleted " + topic);
        }
    }
}
