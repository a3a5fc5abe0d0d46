// franz-go, as foreign_clients.py says.
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Args[2], ",")...)}
	switch os.Args[len(os.Args)-1] {
	case "max=0.9.0":
		options = append(options, kgo.MaxVersions(kversion.V0_9_0()))
	case "isolation=read_committed":
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	case "idempotent=false":
		options = append(options, kgo.DisableIdempotentWrite())
	}
	var err error
	switch topic, rest := os.Args[3], os.Args[4:]; os.Args[1] {
	case "produce":
		err = produce(options, topic, rest[0], number(rest[1]), number(rest[2]))
	case "transact":
		err = transact(options, topic, number(rest[0]), number(rest[1]))
	case "consume":
		err = consume(options, topic, rest[0], number(rest[1]))
	case "admin":
		err = administer(options, topic, rest[0])
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

func produce(options []kgo.Opt, topic, codec string, first, count int) error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	}
	client, err := kgo.NewClient(append(options, kgo.ProducerBatchCompression(codecs[codec]))...)
	if err != nil {
		return err
	}
	defer client.Close()
	records := numbered(topic, first, count)
	if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		return err
	}
	fmt.Printf("sent %d\n", count)
	return nil
}

func transact(options []kgo.Opt, topic string, first, count int) error {
	client, err := kgo.NewClient(append(options, kgo.TransactionalID(topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx := context.Background()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		records := numbered(topic, first, count)
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, end); err != nil {
			return err
		}
		word := map[kgo.TransactionEndTry]string{kgo.TryAbort: "aborted", kgo.TryCommit: "committed"}
		fmt.Println(word[end], count)
	}
	return nil
}

func numbered(topic string, first, count int) (records []*kgo.Record) {
	for n := first; n < first+count; n++ {
		records = append(records, &kgo.Record{
			Topic: topic, Key: []byte(fmt.Sprintf("k%d", n)), Value: []byte(strconv.Itoa(n)),
		})
	}
	return records
}

func consume(options []kgo.Opt, topic, group string, count int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	owned := 0
	counted := func(sign int) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
			owned += sign * len(change[topic])
			fmt.Printf("assigned %d\n", owned)
		}
	}
	client, err := kgo.NewClient(append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(counted(1)), kgo.OnPartitionsRevoked(counted(-1)))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for seen := 0; count == 0 || seen < count; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			break
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			fmt.Printf("message %d %d %s %s %d\n", r.Partition, r.Offset, r.Key, r.Value,
				r.Timestamp.UnixMilli())
		})
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
		fmt.Printf("committed %d\n", seen)
	}
	client.LeaveGroup()
	fmt.Println("left")
	return nil
}

func administer(options []kgo.Opt, topic, group string) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, admin := context.Background(), kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
		return err
	}
	fmt.Println("created", topic)
	for listed := false; !listed; { // any broker answers, and hears of it in its turn
		topics, err := admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		if listed = topics.Has(topic); !listed {
			time.Sleep(100 * time.Millisecond)
		}
	}
	fmt.Println("listed", topic)
	groups, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	if _, found := groups[group]; found {
		fmt.Println("group", group)
	}
	described, err := admin.DescribeGroups(ctx, group)
	if err != nil {
		return err
	}
	fmt.Println("state", described[group].State, len(described[group].Members))
	if _, err := admin.DeleteTopics(ctx, topic); err != nil {
		return err
	}
	fmt.Println("deleted", topic)
	return nil
}
