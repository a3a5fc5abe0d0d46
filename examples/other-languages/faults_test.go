// A suite in Go that breaks requests to a local cluster by rule, with franz-go:
//
//	kafka08 up --detach --control 127.0.0.1:0 && eval "$(kafka08 status --env)"
//	go mod init faults && go get github.com/twmb/franz-go/pkg/kgo github.com/twmb/franz-go/pkg/kadm
//	go test
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var topic = fmt.Sprintf("go-%d", os.Getpid())

// ask returns what the cluster says to a request.
func ask(t *testing.T, method, path string, body map[string]any) map[string]any {
	t.Helper()
	token, err := os.ReadFile(os.Getenv("KAFKA08_CONTROL_TOKEN_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	content, _ := json.Marshal(body)
	request, err := http.NewRequest(method, os.Getenv("KAFKA08_CONTROL")+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %v", method, path, said["error"])
	}
	return said
}

// client is a producer to the topic that sends again, and may store twice what it sends again.
func client(t *testing.T) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA08_BOOTSTRAP"), ",")...),
		kgo.DefaultProduceTopic(topic),
		kgo.DisableIdempotentWrite(),
		kgo.MetadataMinAge(20*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func send(t *testing.T, to *kgo.Client, value string) {
	t.Helper()
	if err := to.ProduceSync(context.Background(), kgo.StringRecord(value)).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// stored is the number of messages that the topic has.
func stored(t *testing.T, of *kgo.Client) int64 {
	t.Helper()
	offsets, err := kadm.NewClient(of).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := offsets.Lookup(topic, 0)
	return end.Offset
}

func TestFaults(t *testing.T) {
	ask(t, "POST", "/topics", map[string]any{"name": topic, "replication_factor": 2})
	t.Cleanup(func() { ask(t, "POST", "/heal", nil) })
	kafka := client(t)

	t.Run("an error is tried again", func(t *testing.T) {
		rule := ask(t, "POST", "/faults", map[string]any{
			"api": "Produce", "topic": topic, "error": "NOT_ENOUGH_REPLICAS", "times": 2})
		send(t, kafka, "once")
		removed := ask(t, "DELETE", fmt.Sprintf("/faults/%v", rule["number"]), nil)
		if removed["hits"] != 2.0 || stored(t, kafka) != 1 {
			t.Fatalf("%v hits, %d stored", removed["hits"], stored(t, kafka))
		}
	})

	t.Run("an acknowledgement that is lost makes a duplicate", func(t *testing.T) {
		ask(t, "POST", "/faults", map[string]any{
			"api": "Produce", "topic": topic, "close": "after", "times": 1})
		send(t, kafka, "twice")
		if count := stored(t, kafka); count != 3 {
			t.Fatalf("%d stored", count)
		}
	})

	t.Run("another broker leads when the leader dies", func(t *testing.T) {
		leader := ask(t, "POST", "/wait/leader", map[string]any{"topic": topic})["leader"]
		ask(t, "POST", "/wait/isr", map[string]any{"topic": topic})
		ask(t, "POST", fmt.Sprintf("/brokers/%v/kill", leader), map[string]any{"expire": true})
		ask(t, "POST", "/wait/leader", map[string]any{"topic": topic, "other_than": leader})
		send(t, kafka, "after")
		if count := stored(t, kafka); count != 4 {
			t.Fatalf("%d stored", count)
		}
	})
}
