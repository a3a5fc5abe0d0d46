// Go's ZooKeeper client (github.com/go-zookeeper/zk) in the ways in which programs use it.
//
//	main HOST:PORT    prints a line for each step, "waiting SESSION" before its session is to expire
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/go-zookeeper/zk"
)

func main() {
	session, events, err := zk.Connect(os.Args[1:2], 4*time.Second, zk.WithLogInfo(false))
	check(err)
	reach(events, zk.StateHasSession)
	open := zk.WorldACL(zk.PermAll)

	_, err = session.Create("/go", []byte("1"), 0, open)
	check(err)
	_, err = session.Create("/go", nil, 0, open)
	fmt.Println("again:", err)
	_, stat, changed, err := session.GetW("/go")
	check(err)
	_, err = session.Set("/go", []byte("2"), stat.Version)
	check(err)
	fmt.Println("watch:", (<-changed).Type)
	_, err = session.Set("/go", []byte("3"), stat.Version)
	fmt.Println("old version:", err)
	data, stat, err := session.Get("/go")
	check(err)
	fmt.Println("data:", string(data), stat.Version)

	_, _, children, err := session.ChildrenW("/go")
	check(err)
	path, err := session.CreateProtectedEphemeralSequential("/go/member-", nil, open)
	check(err)
	fmt.Println("children:", (<-children).Type, path[len(path)-10:])
	names, _, err := session.Children("/go")
	check(err)
	fmt.Println("count:", len(names))

	_, err = session.Multi(
		&zk.CheckVersionRequest{Path: "/go", Version: stat.Version},
		&zk.CreateRequest{Path: "/go/both", Data: nil, Acl: open, Flags: 0},
		&zk.DeleteRequest{Path: "/go/none", Version: -1},
	)
	fmt.Println("multi:", err)
	there, _, err := session.Exists("/go/both")
	check(err)
	fmt.Println("both:", there)
	lock := zk.NewLock(session, "/go/lock", open)
	check(lock.Lock())
	check(lock.Unlock())

	fmt.Println("waiting", session.SessionID())
	reach(events, zk.StateExpired)
	reach(events, zk.StateHasSession)
	there, _, err = session.Exists(path)
	check(err)
	fmt.Println("its znode:", there)
	session.Close()
}

func reach(events <-chan zk.Event, state zk.State) {
	deadline := time.After(30 * time.Second)
	for {
		select {
		case event := <-events:
			if event.State == state {
				fmt.Println("state:", state)
				return
			}
		case <-deadline:
			fmt.Println("never:", state)
			os.Exit(1)
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
