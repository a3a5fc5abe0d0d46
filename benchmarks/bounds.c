/* What no broker can avoid, and nothing else: receive, check each CRC, write the offsets, write to a
 * file, answer. No protocol, no look-ups, no indexes. What a broker needs beside this is its own.
 * And what no consumer can avoid: fetch, receive, and find the next offsets.
 *
 *   bounds produce PARTITIONS SET_BYTES CONNECTIONS WINDOW SECONDS DIRECTORY
 *       requests of one set for each of PARTITIONS files
 *   bounds replicate SET_BYTES CONNECTIONS WINDOW SECONDS DIRECTORY
 *       a leader and two followers, each a process: a set is answered when both have written it
 *   bounds fetch FETCH_BYTES FILE_BYTES STEPS DIRECTORY
 *       prints its port, and answers each request of one client with the next bytes of a file in
 *       memory. STEPS: sendfile, map (send from a mapping of the file), remap (from a mapping for
 *       each send), or read (into a buffer that is used again)
 *   bounds consume PORT TOPIC PARTITIONS FETCH_BYTES COUNT REQUESTS STEPS
 *       COUNT messages of a broker of 0.10 on this machine, whose entries all have one size. The
 *       partitions are dealt to REQUESTS fetches, all of which are in flight. STEPS: receive, check
 *       (also each CRC), copy (also each value, into one buffer after the other)
 *
 * Frames are a size of 4 bytes and what follows. Prints one line of JSON: requests a second, CPU
 * milliseconds of a request (all servers together, the load generator left out), CPU seconds a GB,
 * and with one request under way its p50 and p99 in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crc32.h"

enum {
    VALUE_BYTES = 100,
    ENTRY_BYTES = 26 + VALUE_BYTES,
    BUFFER_BYTES = 4 << 20,
    FETCH_BYTES = 1 << 20,
    PIECE_BYTES = 1 << 18,
    WRITTEN_BYTES = 200000, /* at once: a page cache may keep them in few, large pages */
    ANSWER_BYTES = 22,
    FETCHED_BYTES = 64,
    PEERS_MAX = 64,
    FILES_MAX = 1024,
    FILE_BYTES_MAX = 1 << 28,
    TIMES_MAX = 1 << 22,
};

struct peer {
    int fd;
    size_t have;          /* bytes in the buffer */
    uint8_t* buffer;
    int64_t at;           /* a client: the end that it waits for; a follower: its own end */
    int waits;
};

static void fail(const char* what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static double cpu(int who) {
    struct rusage used;
    getrusage(who, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static uint32_t get32(const uint8_t* at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static void put32(uint8_t* at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static void put64(uint8_t* at, uint64_t value) {
    put32(at, value >> 32);
    put32(at + 4, (uint32_t)value);
}

/* Entries of 0.8 up to about `size` bytes; returns how many bytes they are. */
static size_t make_set(uint8_t* at, size_t size) {
    size_t count = size / ENTRY_BYTES ? size / ENTRY_BYTES : 1;
    for (size_t n = 0; n < count; n++, at += ENTRY_BYTES) {
        memset(at, 0, ENTRY_BYTES);
        put32(at + 8, ENTRY_BYTES - 12);
        put32(at + 18, 0xffffffff);
        put32(at + 22, VALUE_BYTES);
        memset(at + 26, 'a' + n % 26, VALUE_BYTES);
        put32(at + 12, kafka08_crc32(0, at + 16, ENTRY_BYTES - 16));
    }
    return count * ENTRY_BYTES;
}

/* Check each entry; number them from `offset` unless it is negative. The bytes of whole entries: a
 * fetch may cut the last. */
static size_t check(uint8_t* data, size_t size, int64_t offset) {
    uint8_t *at = data, *end = data + size;
    while (end - at >= 26) {
        uint32_t length = get32(at + 8);
        if (length > (size_t)(end - at) - 12) break;
        if (length < 14 || kafka08_crc32(0, at + 16, length - 4) != get32(at + 12)) {
            fprintf(stderr, "a damaged entry\n");
            exit(1);
        }
        if (offset >= 0) put64(at, offset++);
        at += 12 + length;
    }
    return at - data;
}

static void send_all(int fd, const uint8_t* data, size_t size) {
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) exit(0); /* the other side has ended */
        data += sent;
        size -= sent;
    }
}

static void receive_all(int fd, uint8_t* data, size_t size) {
    while (size) {
        ssize_t received = recv(fd, data, size, 0);
        if (received <= 0) exit(0);
        data += received;
        size -= received;
    }
}

static int listening(struct sockaddr_in* address) {
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (void*)address, size) || listen(fd, PEERS_MAX)) fail("listen");
    getsockname(fd, (void*)address, &size);
    return fd;
}

static int connected(const struct sockaddr_in* address) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const void*)address, sizeof *address)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int open_file(const char* directory, const char* name, int number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d", directory, name, number);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) fail(path);
    return fd;
}

static int by_value(const void* a, const void* b) {
    double difference = *(const double*)a - *(const double*)b;
    return (difference > 0) - (difference < 0);
}

/* Sends requests on all connections, `window` ahead on each; with a single one they are timed. */
static void generate(const struct sockaddr_in* address, const uint8_t* frame, size_t size,
                     size_t answer, int connections, int window, double seconds, int report) {
    struct pollfd fds[PEERS_MAX];
    size_t have[PEERS_MAX] = {0};
    uint8_t* sink = malloc(BUFFER_BYTES);
    double* times = malloc(sizeof *times * TIMES_MAX);
    long count = 0;
    for (int n = 0; n < connections; n++) {
        fds[n].fd = connected(address);
        fds[n].events = POLLIN;
        fds[n].revents = 0;
    }
    double began = now(), end = began + seconds;
    if (connections == 1 && window == 1) {
        while (now() < end && count < TIMES_MAX) {
            double start = now();
            send_all(fds[0].fd, frame, size);
            receive_all(fds[0].fd, sink, answer);
            times[count++] = now() - start;
        }
    } else {
        for (int n = 0; n < connections; n++)
            for (int i = 0; i < window; i++) send_all(fds[n].fd, frame, size);
        while (now() < end) {
            if (poll(fds, connections, 1000) < 0) fail("poll");
            for (int n = 0; n < connections; n++) {
                if (!fds[n].revents) continue;
                ssize_t received = recv(fds[n].fd, sink, BUFFER_BYTES, MSG_DONTWAIT);
                if (received <= 0) continue;
                for (have[n] += received; have[n] >= answer; have[n] -= answer) {
                    count++;
                    send_all(fds[n].fd, frame, size);
                }
            }
        }
    }
    double result[4] = {count, now() - began, 0, 0};
    if (connections == 1 && window == 1 && count) {
        qsort(times, count, sizeof *times, by_value);
        result[2] = times[count / 2] * 1e6;
        result[3] = times[(long)(count * 0.99)] * 1e6;
    }
    if (write(report, result, sizeof result) != sizeof result) fail("write");
    exit(0);
}

/* Whether something has come; it is in the buffer then. */
static int receive(struct peer* peer) {
    ssize_t received =
        recv(peer->fd, peer->buffer + peer->have, BUFFER_BYTES - peer->have, MSG_DONTWAIT);
    if (received > 0) peer->have += received;
    return received > 0;
}

/* The size of the frame at `at`, without its first four bytes; -1 if it is not whole. */
static int64_t frame_at(const struct peer* peer, size_t at) {
    if (peer->have - at < 4) return -1;
    uint32_t size = get32(peer->buffer + at);
    return peer->have - at - 4 < size ? -1 : (int64_t)size;
}

static void drop(struct peer* peer, size_t size) {
    memmove(peer->buffer, peer->buffer + size, peer->have - size);
    peer->have -= size;
}

static int accept_all(int fd, struct peer* peers, struct pollfd* fds, int count) {
    int one = 1;
    for (int n = 0; n < count; n++) {
        peers[n] = (struct peer){.fd = accept(fd, NULL, NULL), .buffer = malloc(BUFFER_BYTES)};
        setsockopt(peers[n].fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fds[n] = (struct pollfd){.fd = peers[n].fd, .events = POLLIN};
    }
    return count;
}

static void produce(int partitions, size_t set_bytes, int connections, int window, double seconds,
                    const char* directory) {
    static int files[FILES_MAX];
    static int64_t ends[FILES_MAX], offsets[FILES_MAX];
    struct sockaddr_in address;
    struct peer peers[PEERS_MAX];
    struct pollfd fds[PEERS_MAX];
    int report[2], listener = listening(&address);
    size_t each = 0, size = 4, answer_bytes = 4 + (size_t)ANSWER_BYTES * partitions;
    uint8_t* frame = malloc(8 + (set_bytes + ENTRY_BYTES + 8) * partitions);
    uint8_t* answer = calloc(1, answer_bytes);
    for (int n = 0; n < partitions; n++) {
        each = make_set(frame + size + 8, set_bytes);
        put32(frame + size, n);
        put32(frame + size + 4, each);
        size += 8 + each;
        files[n] = open_file(directory, "produce", n);
    }
    put32(frame, size - 4);
    if (pipe(report)) fail("pipe");
    pid_t child = fork();
    if (!child) generate(&address, frame, size, answer_bytes, connections, window, seconds, report[1]);
    close(report[1]);
    accept_all(listener, peers, fds, connections);
    double used = cpu(RUSAGE_SELF);
    for (int open = connections; open;) {
        if (poll(fds, connections, 1000) < 0) fail("poll");
        for (int n = 0; n < connections; n++) {
            struct peer* peer = &peers[n];
            if (!fds[n].revents) continue;
            if (!receive(peer)) {
                fds[n].fd = -1;
                open--;
                continue;
            }
            size_t at = 0;
            int64_t length;
            while ((length = frame_at(peer, at)) >= 0) {
                uint8_t* set = peer->buffer + at + 4;
                uint8_t* end = set + length;
                while (set < end) {
                    uint32_t number = get32(set), bytes = get32(set + 4);
                    check(set + 8, bytes, offsets[number]);
                    if (pwrite(files[number], set + 8, bytes, ends[number]) != bytes) fail("pwrite");
                    offsets[number] += bytes / ENTRY_BYTES;
                    ends[number] += bytes;
                    if (ends[number] > FILE_BYTES_MAX) {
                        if (ftruncate(files[number], 0)) fail("ftruncate");
                        ends[number] = 0;
                    }
                    set += 8 + bytes;
                }
                if (send(peer->fd, answer, answer_bytes, MSG_NOSIGNAL) < 0) break;
                at += 4 + length;
            }
            drop(peer, at);
        }
    }
    used = cpu(RUSAGE_SELF) - used;
    double result[4];
    if (read(report[0], result, sizeof result) != sizeof result) fail("read");
    waitpid(child, NULL, 0);
    printf("{\"requests\": %.1f, \"ms\": %.4f, \"s_per_gb\": %.3f, \"p50\": %.1f, \"p99\": %.1f}\n",
           result[0] / result[1], used / result[0] * 1e3, used / (result[0] * each * partitions) * 1e9,
           result[2], result[3]);
}

/* Copies from the leader until it is gone. */
static void follow(const struct sockaddr_in* address, const char* directory, int number) {
    int file = open_file(directory, "follower", number), fd = connected(address);
    uint8_t* buffer = malloc(FETCH_BYTES + BUFFER_BYTES);
    uint8_t fetch[12];
    int64_t end = 0, position = 0;
    for (;;) {
        put32(fetch, 8);
        put64(fetch + 4, end);
        send_all(fd, fetch, sizeof fetch);
        receive_all(fd, buffer, 4);
        uint32_t size = get32(buffer);
        receive_all(fd, buffer, size);
        size = check(buffer, size, -1);
        if (pwrite(file, buffer, size, position) != size) fail("pwrite");
        end += size;
        position += size;
        if (position > FILE_BYTES_MAX) {
            if (ftruncate(file, 0)) fail("ftruncate");
            position = 0;
        }
    }
}

static void serve(struct peer* follower, int file, int64_t* base, int64_t end) {
    uint8_t head[4];
    off_t at = follower->at - *base;
    int64_t size = end - follower->at < FETCH_BYTES ? end - follower->at : FETCH_BYTES;
    put32(head, size);
    send(follower->fd, head, 4, MSG_MORE | MSG_NOSIGNAL);
    while (size) {
        ssize_t sent = sendfile(follower->fd, file, &at, size);
        if (sent <= 0) return;
        size -= sent;
    }
    follower->waits = 0;
}

static void replicate(size_t set_bytes, int connections, int window, double seconds,
                      const char* directory) {
    struct sockaddr_in clients, followers;
    struct peer peers[PEERS_MAX];
    struct pollfd fds[PEERS_MAX];
    uint8_t answer[4 + ANSWER_BYTES] = {0};
    int report[2], for_clients = listening(&clients), for_followers = listening(&followers);
    int file = open_file(directory, "leader", 0), count = 2 + connections, open = connections;
    int64_t end = 0, base = 0, offset = 0;
    static int64_t waiting[PEERS_MAX][1024];
    static int first[PEERS_MAX], last[PEERS_MAX];
    uint8_t* frame = malloc(4 + set_bytes + ENTRY_BYTES);
    size_t each = make_set(frame + 4, set_bytes);
    put32(frame, each);
    if (pipe(report)) fail("pipe");
    pid_t children[3];
    for (int n = 0; n < 2; n++)
        if (!(children[n] = fork())) follow(&followers, directory, n);
    accept_all(for_followers, peers, fds, 2);
    struct rusage unused;
    if (!(children[2] = fork()))
        generate(&clients, frame, 4 + each, sizeof answer, connections, window, seconds, report[1]);
    accept_all(for_clients, peers + 2, fds + 2, connections);
    double used = cpu(RUSAGE_SELF);
    while (open) {
        if (poll(fds, count, 1000) < 0) fail("poll");
        for (int n = 0; n < count; n++) {
            struct peer* peer = &peers[n];
            int64_t length;
            size_t at = 0;
            if (!fds[n].revents) continue;
            if (!receive(peer)) {
                fds[n].fd = -1;
                open -= n >= 2;
                continue;
            }
            while ((length = frame_at(peer, at)) >= 0) {
                uint8_t* data = peer->buffer + at + 4;
                if (n < 2) {
                    peer->at = (int64_t)((uint64_t)get32(data) << 32 | get32(data + 4));
                    peer->waits = 1;
                } else {
                    check(data, length, offset);
                    if (pwrite(file, data, length, end - base) != length) fail("pwrite");
                    offset += length / ENTRY_BYTES;
                    end += length;
                    waiting[n][last[n]++ % 1024] = end;
                }
                at += 4 + length;
            }
            drop(peer, at);
        }
        int64_t high_watermark = peers[0].at < peers[1].at ? peers[0].at : peers[1].at;
        if (end - base > FILE_BYTES_MAX && high_watermark == end) {
            if (ftruncate(file, 0)) fail("ftruncate");
            base = end;
        }
        for (int n = 0; n < 2; n++)
            if (peers[n].waits && peers[n].at < end) serve(&peers[n], file, &base, end);
        for (int n = 2; n < count; n++)
            while (first[n] < last[n] && waiting[n][first[n] % 1024] <= high_watermark) {
                send(peers[n].fd, answer, sizeof answer, MSG_NOSIGNAL);
                first[n]++;
            }
    }
    used = cpu(RUSAGE_SELF) - used;
    double result[4];
    if (read(report[0], result, sizeof result) != sizeof result) fail("read");
    for (int n = 0; n < 2; n++) {
        kill(children[n], SIGTERM);
        wait4(children[n], NULL, 0, &unused);
        used += unused.ru_utime.tv_sec + unused.ru_stime.tv_sec +
                (unused.ru_utime.tv_usec + unused.ru_stime.tv_usec) / 1e6;
    }
    waitpid(children[2], NULL, 0);
    printf("{\"requests\": %.1f, \"ms\": %.4f, \"s_per_gb\": %.3f, \"p50\": %.1f, \"p99\": %.1f}\n",
           result[0] / result[1], used / result[0] * 1e3, used / (result[0] * each) * 1e9, result[2],
           result[3]);
}

static ssize_t send_remapped(int fd, int file, off_t at, size_t size) {
    off_t start = at & ~(off_t)(sysconf(_SC_PAGESIZE) - 1);
    size_t length = size + (at - start);
    uint8_t* mapped = mmap(NULL, length, PROT_READ, MAP_SHARED, file, start);
    if (mapped == MAP_FAILED) fail("mmap");
    ssize_t sent = send(fd, mapped + (at - start), size, MSG_NOSIGNAL);
    munmap(mapped, length);
    return sent;
}

static ssize_t send_read(int fd, int file, off_t at, size_t size) {
    static uint8_t buffer[PIECE_BYTES];
    ssize_t have = pread(file, buffer, size < PIECE_BYTES ? size : PIECE_BYTES, at);
    return have <= 0 ? have : send(fd, buffer, have, MSG_NOSIGNAL);
}

/* To one client, which is the load generator of the brokers; then waits for its end. */
static void answer_fetches(size_t fetch_bytes, size_t file_bytes, const char* steps,
                           const char* directory) {
    struct sockaddr_in address;
    struct peer peer;
    struct pollfd fds;
    uint8_t head[4 + FETCHED_BYTES] = {0}, *mapped;
    int listener = listening(&address), file = open_file(directory, "fetch", 0);
    off_t at = 0;
    char way = !strcmp(steps, "remap") ? 'e' : steps[0];
    uint8_t* set = calloc(1, WRITTEN_BYTES);
    for (size_t left = file_bytes; left >= WRITTEN_BYTES; left -= WRITTEN_BYTES)
        if (write(file, set, WRITTEN_BYTES) != WRITTEN_BYTES) fail("write");
    if (ftruncate(file, file_bytes)) fail("ftruncate");
    mapped = mmap(NULL, file_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    if (mapped == MAP_FAILED) fail("mmap");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    accept_all(listener, &peer, &fds, 1);
    put32(head, FETCHED_BYTES + fetch_bytes);
    while (poll(&fds, 1, -1) > 0 && receive(&peer)) {
        size_t from = 0;
        int64_t length;
        while ((length = frame_at(&peer, from)) >= 0) {
            send(peer.fd, head, sizeof head, MSG_MORE | MSG_NOSIGNAL);
            if (at + fetch_bytes > file_bytes) at = 0;
            for (size_t left = fetch_bytes; left;) {
                off_t from_here = at;
                ssize_t sent = way == 'm'   ? send(peer.fd, mapped + at, left, MSG_NOSIGNAL)
                               : way == 'e' ? send_remapped(peer.fd, file, at, left)
                               : way == 'r' ? send_read(peer.fd, file, at, left)
                                            : sendfile(peer.fd, file, &from_here, left);
                if (sent <= 0) pause();
                left -= sent;
                at += sent;
            }
            from += 4 + length;
        }
        drop(&peer, from);
    }
    pause();
}

static void put16(uint8_t* at, uint16_t value) {
    value = htons(value);
    memcpy(at, &value, 2);
}

/* A Fetch 3 of the partitions first, first + step, ... */
static void fetch(int fd, const char* topic, int partitions, int first, int step, size_t fetch_bytes,
                  const int64_t* offsets) {
    uint8_t frame[512 + 16 * PEERS_MAX], *at = frame + 4, *counted;
    size_t length = strlen(topic);
    int count = 0;
    put16(at, 1), put16(at + 2, 3), put32(at + 4, first), put16(at + 8, 0);
    at += 10;
    put32(at, -1), put32(at + 4, 500), put32(at + 8, 1), put32(at + 12, partitions * fetch_bytes);
    put32(at + 16, 1), put16(at + 20, length);
    memcpy(at + 22, topic, length);
    counted = at + 22 + length;
    at = counted + 4;
    for (int n = first; n < partitions; n += step, count++, at += 16) {
        put32(at, n), put64(at + 4, offsets[n]), put32(at + 12, fetch_bytes);
    }
    put32(counted, count);
    put32(frame, at - frame - 4);
    send_all(fd, frame, at - frame);
}

/* Copy the values of whole entries of magic 0 or 1, as a reader that makes columns does. */
static size_t copy(const uint8_t* data, size_t size, uint8_t* to) {
    const uint8_t *at = data, *end = data + size;
    uint8_t* begin = to;
    while (end - at >= 26) {
        uint32_t length = get32(at + 8), key, value;
        if (length > (size_t)(end - at) - 12) break;
        const uint8_t* field = at + (at[16] ? 26 : 18);
        key = get32(field);
        field += 4 + (key == 0xffffffff ? 0 : key);
        value = get32(field);
        if (value != 0xffffffff) memcpy(to, field + 4, value), to += value;
        at += 12 + length;
    }
    return to - begin;
}

static void consume(int port, const char* topic, int partitions, size_t fetch_bytes, int64_t count,
                    int requests, const char* steps) {
    int64_t offsets[PEERS_MAX] = {0}, seen = 0;
    size_t room = 4096 + partitions * fetch_bytes, sink_at = 0;
    uint8_t *buffer = malloc(room), *sink = malloc(8 * fetch_bytes);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = connected(&address);
    double began = now(), used = cpu(RUSAGE_SELF);
    for (int n = 0; n < requests; n++)
        fetch(fd, topic, partitions, n, requests, fetch_bytes, offsets);
    while (seen < count) {
        receive_all(fd, buffer, 4);
        uint32_t size = get32(buffer);
        if (size > room) exit(1);
        receive_all(fd, buffer, size);
        uint8_t* at = buffer + 12;
        int request = get32(buffer);
        at += 2 + strlen(topic);
        uint32_t answered = get32(at);
        uint8_t* sets = at + 4;
        at = sets;
        for (uint32_t n = 0; n < answered; n++) {
            uint32_t bytes = get32(at + 14);
            if (bytes >= 12) {
                int64_t messages = bytes / (12 + get32(at + 26));
                offsets[get32(at)] += messages;
                seen += messages;
            }
            at += 18 + bytes;
        }
        fetch(fd, topic, partitions, request, requests, fetch_bytes, offsets);
        if (!strcmp(steps, "receive")) continue;
        for (at = sets; answered; answered--) {
            uint32_t bytes = get32(at + 14);
            check(at + 18, bytes, -1);
            if (!strcmp(steps, "copy")) {
                copy(at + 18, bytes, sink + sink_at);
                sink_at = (sink_at + fetch_bytes) % (8 * fetch_bytes);
            }
            at += 18 + bytes;
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"messages\": %lld, \"seconds\": %.4f, \"cpu\": %.4f, \"memory\": %.1f}\n", (long long)seen,
           now() - began, cpu(RUSAGE_SELF) - used, usage.ru_maxrss / 1024.0);
}

int main(int count, char** words) {
    signal(SIGPIPE, SIG_IGN);
    kafka08_crc32_select(NULL);
    if (count == 8 && !strcmp(words[1], "produce") && atoi(words[2]) <= FILES_MAX)
        produce(atoi(words[2]), atol(words[3]), atoi(words[4]), atoi(words[5]), atof(words[6]),
                words[7]);
    else if (count == 7 && !strcmp(words[1], "replicate"))
        replicate(atol(words[2]), atoi(words[3]), atoi(words[4]), atof(words[5]), words[6]);
    else if (count == 6 && !strcmp(words[1], "fetch"))
        answer_fetches(atol(words[2]), atol(words[3]), words[4], words[5]);
    else if (count == 9 && !strcmp(words[1], "consume") && atoi(words[4]) <= PEERS_MAX)
        consume(atoi(words[2]), words[3], atoi(words[4]), atol(words[5]), atol(words[6]),
                atoi(words[7]), words[8]);
    else
        return 2;
    return 0;
}
