// sarama, as foreign_clients.py says.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true // a SyncProducer must have it
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	for _, word := range os.Args[4:] {
		switch {
		case strings.HasPrefix(word, "version="):
			version, err := sarama.ParseKafkaVersion(word[len("version="):])
			if err != nil {
				panic(err)
			}
			config.Version = version
		case word == "idempotent=true":
			beIdempotent(config)
		case word == "isolation=read_committed":
			config.Consumer.IsolationLevel = sarama.ReadCommitted
		}
	}
	brokers := strings.Split(os.Args[2], ",")
	var err error
	switch topic, rest := os.Args[3], os.Args[4:]; os.Args[1] {
	case "produce":
		err = produce(brokers, config, topic, rest[0], number(rest[1]), number(rest[2]))
	case "transact":
		err = transact(brokers, config, topic, number(rest[0]), number(rest[1]))
	case "consume":
		err = consume(brokers, config, topic, rest[0], number(rest[1]))
	case "admin":
		err = administer(brokers, config, topic, rest[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func beIdempotent(config *sarama.Config) {
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
}

func numbered(topic string, first, count int) (messages []*sarama.ProducerMessage) {
	for n := first; n < first+count; n++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("k%d", n)),
			Value: sarama.StringEncoder(strconv.Itoa(n)),
		})
	}
	return messages
}

func produce(
	brokers []string, config *sarama.Config, topic, codec string, first, count int,
) error {
	if err := config.Producer.Compression.UnmarshalText([]byte(codec)); err != nil {
		return err
	}
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return err
	}
	if err := producer.SendMessages(numbered(topic, first, count)); err != nil {
		return err
	}
	fmt.Println("sent", count)
	return producer.Close()
}

func transact(brokers []string, config *sarama.Config, topic string, first, count int) error {
	beIdempotent(config)
	config.Producer.Transaction.ID = topic
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return err
	}
	for _, word := range []string{"aborted", "committed"} {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
		if err := producer.SendMessages(numbered(topic, first, count)); err != nil {
			return err
		}
		end := map[string]func() error{"aborted": producer.AbortTxn, "committed": producer.CommitTxn}
		if err := end[word](); err != nil {
			return err
		}
		fmt.Println(word, count)
	}
	return producer.Close()
}

type member struct {
	seen, count int
	stop        func()
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	owned := 0
	for _, partitions := range session.Claims() {
		owned += len(partitions)
	}
	fmt.Println("assigned", owned)
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for message := range claim.Messages() {
		taken <- struct{}{}
		fmt.Printf("message %d %d %s %s %d\n", message.Partition, message.Offset, message.Key,
			message.Value, message.Timestamp.UnixMilli())
		// It commits by itself: a commit for each message would wait behind a Fetch, on one connection.
		session.MarkMessage(message, "")
		m.seen++
		if m.count != 0 && m.seen >= m.count {
			m.stop()
		}
		<-taken
	}
	return nil
}

// taken holds one message at a time: each claim has a goroutine of its own.
var taken = make(chan struct{}, 1)

func consume(brokers []string, config *sarama.Config, topic, group string, count int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	consumer, err := sarama.NewConsumerGroup(brokers, group, config)
	if err != nil {
		return err
	}
	one := &member{count: count, stop: stop}
	for ctx.Err() == nil {
		if err := consumer.Consume(ctx, []string{topic}, one); err != nil {
			return err
		}
	}
	if err := consumer.Close(); err != nil {
		return err
	}
	fmt.Println("left")
	return nil
}

func administer(brokers []string, config *sarama.Config, topic, group string) error {
	admin, err := sarama.NewClusterAdmin(brokers, config)
	if err != nil {
		return err
	}
	detail := &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}
	if err := admin.CreateTopic(topic, detail, false); err != nil {
		return err
	}
	fmt.Println("created", topic)
	for listed := false; !listed; { // any broker answers, and hears of it in its turn
		topics, err := admin.ListTopics()
		if err != nil {
			return err
		}
		if _, listed = topics[topic]; !listed {
			time.Sleep(100 * time.Millisecond)
		}
	}
	fmt.Println("listed", topic)
	groups, err := admin.ListConsumerGroups()
	if err != nil {
		return err
	}
	if _, found := groups[group]; found {
		fmt.Println("group", group)
	}
	described, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return err
	}
	fmt.Println("state", described[0].State, len(described[0].Members))
	if err := admin.DeleteTopic(topic); err != nil {
		return err
	}
	fmt.Println("deleted", topic)
	return admin.Close()
}
