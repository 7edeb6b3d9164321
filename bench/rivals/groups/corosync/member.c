/* One member of a closed process group of Corosync, over libcpg: waits for all members, warms up,
 * waits for a line of its input, sends to all in agreed (total) order, counts what comes, its own
 * messages too. Prints lines of words, as the members of the other sides do: view, warm, started,
 * times, result. Stays until it is killed, so that the ring keeps its members.
 *
 * One thread does all: cpg_dispatch calls deliver and change.
 *
 * A message: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), stamp (64: the time at
 * which it was due; in an end the number of messages sent), little endian, and content: words of 64
 * bits that follow from sender and sequence. Counts, content, digest and histogram follow the rules
 * of the other sides' members; README.md of bench/rivals has them.
 */
#define _GNU_SOURCE /* ppoll */
#include <corosync/cpg.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_BYTES = 24, MEMBERS_MAX = 16, SAMPLES_MAX = 8192, AT_ONCE = 64 };
enum { START = 1, DATA = 2, END = 3, WARM = 6, READY = 7 };
/* Times below 2^BITS * 2 have a bucket each; longer ones share 2^BITS buckets an octave. */
enum { BITS = 7, BUCKETS = 64 << BITS };

static const uint64_t SECOND = 1000000000u;
static const uint64_t SPREAD = 0x9e3779b97f4a7c15u;

struct sender {
  uint64_t next, received, duplicated, disordered, damaged, digest, sent;
  int has_ended, has_started, is_warm, is_present;
};

static struct sender senders[MEMBERS_MAX];
static uint64_t received, first_at, last_at, longest_pause, sampled_at;
static uint64_t order_hash = 1469598103934665603u;
static struct { uint64_t at, count; } samples[SAMPLES_MAX];
static uint64_t from_due[BUCKETS], from_sent[BUCKETS];
static unsigned sample_count, members = 2, here;
/* Options; whole: every word of the content is written and looked at, not only the last one. */
static uint32_t own;
static int whole;
static uint64_t rate;

/* The clock that all members read, of every side. */
static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * SECOND + time.tv_nsec;
}

static uint64_t number(const uint8_t *bytes, unsigned length) {
  uint64_t value = 0;
  for (unsigned i = 0; i < length; i++) value |= (uint64_t)bytes[i] << 8 * i;
  return value;
}

static void put(uint8_t *bytes, uint64_t value, unsigned length) {
  for (unsigned i = 0; i < length; i++) bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t seed(unsigned sender, uint64_t sequence) {
  return (sequence ^ (uint64_t)sender << 56) * SPREAD;
}

static uint64_t step(uint64_t digest, uint64_t word) {
  uint64_t mixed = digest ^ word;
  return (mixed << 23 | mixed >> 41) * SPREAD;
}

/* First word of the content that is written and looked at; *count gets the number of all. */
static size_t first_word(size_t length, size_t *count) {
  *count = (length - HEADER_BYTES) / 8;
  return whole || *count == 0 ? 0 : *count - 1;
}

static void count_time(uint64_t *buckets, uint64_t time) {
  int shift = 63 - __builtin_clzll(time | 1) - BITS;
  if (shift < 0) shift = 0;
  buckets[((size_t)shift << BITS) + (size_t)(time >> shift)]++;
}

static void print_times(const char *from, const uint64_t *buckets) {
  printf("times from=%s counts=", from);
  for (int i = 0, is_first = 1; i < BUCKETS; i++)
    if (buckets[i]) printf("%s%d:%" PRIu64, is_first ? "" : ",", i, buckets[i]), is_first = 0;
  printf("\n");
}

static void take(struct sender *sender, unsigned from, const uint8_t *message, size_t length) {
  uint64_t now = now_ns(), sequence = number(message + 8, 8);
  if (sequence < sender->next) {
    sender->duplicated++;
    return;
  }
  sender->disordered += sequence > sender->next;
  sender->next = sequence + 1;
  sender->received++;
  size_t words, is_intact = 1;
  sender->digest = step(sender->digest, sequence);
  for (size_t i = first_word(length, &words); i < words; i++) {
    uint64_t word = number(message + HEADER_BYTES + 8 * i, 8);
    is_intact &= word == seed(from, sequence) + i;
    sender->digest = step(sender->digest, word);
  }
  sender->damaged += !is_intact;
  order_hash = (order_hash ^ (sequence * MEMBERS_MAX + from)) * 1099511628211u;
  if (first_at == 0) first_at = now;
  if (last_at != 0 && now - last_at > longest_pause) longest_pause = now - last_at;
  last_at = now;
  received++;
  if (rate && from != own) {
    uint64_t sent_at = number(message + HEADER_BYTES, 8);
    count_time(from_due, now - number(message + 16, 8));
    count_time(from_sent, now - sent_at);
  }
  if (now - sampled_at > SECOND / 50 && sample_count < SAMPLES_MAX) {
    sampled_at = now;
    samples[sample_count].at = now;
    samples[sample_count++].count = received;
  }
}

/* Called for each message, in the one order of all members. */
static void deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t pid,
                    void *bytes, size_t length) {
  (void)handle, (void)group, (void)node, (void)pid;
  const uint8_t *message = bytes;
  if (length < HEADER_BYTES || number(message + 4, 4) >= members) return;
  unsigned from = (unsigned)number(message + 4, 4);
  struct sender *sender = &senders[from];
  sender->has_started = 1;
  if (message[0] == DATA) take(sender, from, message, length);
  if (message[0] == READY) sender->is_warm = 1;
  if (message[0] == END) {
    sender->sent = number(message + 16, 8);
    sender->has_ended = 1;
  }
}

/* Called for each new view. */
static void change(cpg_handle_t handle, const struct cpg_name *group,
                   const struct cpg_address *list, size_t count, const struct cpg_address *left,
                   size_t left_count, const struct cpg_address *joined, size_t joined_count) {
  (void)handle, (void)group, (void)left, (void)left_count, (void)joined, (void)joined_count;
  for (unsigned i = 0; i < members; i++) senders[i].is_present = 0;
  for (size_t i = 0; i < count; i++)
    if (list[i].nodeid >= 1 && list[i].nodeid <= members) senders[list[i].nodeid - 1].is_present = 1;
  here = (unsigned)count;
  printf("view at=%" PRIu64 " members=%zu\n", now_ns(), count);
  fflush(stdout);
}

/* Whether everything has come that present members have sent. */
static int is_whole(void) {
  for (unsigned i = 0; i < members; i++)
    if (senders[i].is_present && (!senders[i].has_ended || senders[i].received < senders[i].sent))
      return 0;
  return 1;
}

static int are_warm(void) {
  for (unsigned i = 0; i < members; i++)
    if (!senders[i].is_warm) return 0;
  return 1;
}

static int have_started(void) {
  for (unsigned i = 0; i < members; i++)
    if (!senders[i].has_started) return 0;
  return 1;
}

/* CPU time of this process and of the daemon that the environment names. */
static uint64_t cpu_ns(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  uint64_t own = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SECOND +
                 (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
  char path[64], text[1024];
  const char *daemon = getenv("COROSYNC_PID");
  snprintf(path, sizeof path, "/proc/%s/stat", daemon ? daemon : "self");
  FILE *file = fopen(path, "r");
  if (!file) return own;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char *rest = strrchr(text, ')');
  unsigned long user = 0, system = 0;
  if (rest) sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return own + (user + system) * (SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Fails while the daemon's queue is full: the caller dispatches and tries again. */
static int send_all(cpg_handle_t handle, uint8_t kind, uint64_t sequence, uint64_t stamp,
                    uint8_t *bytes, size_t length) {
  bytes[0] = kind;
  put(bytes + 4, own, 4);
  put(bytes + 8, sequence, 8);
  put(bytes + 16, stamp, 8);
  if (kind == DATA || kind == WARM) {
    size_t words;
    for (size_t i = first_word(length, &words); i < words; i++)
      put(bytes + HEADER_BYTES + 8 * i, seed(own, sequence) + i, 8);
    if (rate && length >= HEADER_BYTES + 8) put(bytes + HEADER_BYTES, now_ns(), 8);
  }
  struct iovec piece = {bytes, length};
  return cpg_mcast_joined(handle, CPG_TYPE_AGREED, &piece, 1) == CS_OK;
}

/* Sends flat out for the time of the warm-up, until all others have done so, too. */
static void warm_up(cpg_handle_t handle, struct pollfd *wait, uint64_t time, uint8_t *bytes,
                    size_t size) {
  uint64_t over = now_ns() + time, sent = 0;
  for (int is_ready = 0; !is_ready || !are_warm();) {
    int work = 0;

    while (work < AT_ONCE && now_ns() < over && send_all(handle, WARM, sent, 0, bytes, size))
      sent++, work++;
    if (!is_ready && now_ns() >= over)
      is_ready = send_all(handle, READY, 0, 0, bytes, HEADER_BYTES);
    if (!work) poll(wait, 1, 1);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
  }
}

/* Says that it is warm, and waits for the line that starts the clock. */
static void wait_for_line(cpg_handle_t handle, int descriptor) {
  struct pollfd both[2] = {{.fd = descriptor, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  printf("warm at=%" PRIu64 "\n", now_ns());
  fflush(stdout);
  for (char line = 0; line != '\n';) {
    poll(both, 2, -1);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
    if (both[1].revents && read(0, &line, 1) != 1) break;
  }
  printf("started at=%" PRIu64 "\n", now_ns());
  fflush(stdout);
}

/* Messages a second in the second half of the time. */
static double steady(void) {
  uint64_t middle = first_at + (last_at - first_at) / 2;
  for (unsigned i = 0; i < sample_count; i++)
    if (samples[i].at >= middle && last_at > samples[i].at)
      return (double)(received - samples[i].count) * 1e9 / (double)(last_at - samples[i].at);
  return 0;
}

static void print_result(uint64_t sent, uint64_t cpu) {
  uint64_t duplicated = 0, disordered = 0, damaged = 0;
  for (unsigned i = 0; i < members; i++) {
    duplicated += senders[i].duplicated;
    disordered += senders[i].disordered;
    damaged += senders[i].damaged;
  }
  if (rate) print_times("due", from_due), print_times("sent", from_sent);
  printf("result sent=%" PRIu64 " cpu=%" PRIu64 " complete=%d received=%" PRIu64 " elapsed=%" PRIu64
         " steady=%.0f duplicated=%" PRIu64 " disordered=%" PRIu64 " damaged=%" PRIu64
         " pause=%" PRIu64 " hash=%" PRIx64 " by=",
         sent, cpu, is_whole(), received, last_at - first_at, steady(), duplicated, disordered,
         damaged, longest_pause, order_hash);
  for (unsigned i = 0; i < members; i++)
    printf("%s%" PRIu64, i ? "," : "", senders[i].received);
  printf(" digests=");
  for (unsigned i = 0; i < members; i++)
    printf("%s%" PRIx64, i ? "," : "", senders[i].digest);
  printf("\n");
  fflush(stdout);
}

int main(int count, char **words) {
  size_t size = 1000;
  uint64_t messages = 0, send_ms = 1000, warm_ms = 0, limit_ms = 30000, sent = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    uint64_t value = strtoull(words[i + 1], NULL, 10);
    if (!strcmp(words[i], "--index")) own = (uint32_t)value;
    if (!strcmp(words[i], "--members")) members = (unsigned)value;
    if (!strcmp(words[i], "--size")) size = value;
    if (!strcmp(words[i], "--messages")) messages = value;
    if (!strcmp(words[i], "--send-ms")) send_ms = value;
    if (!strcmp(words[i], "--warm-ms")) warm_ms = value;
    if (!strcmp(words[i], "--rate")) rate = value;
    if (!strcmp(words[i], "--whole")) whole = value == 1;
    if (!strcmp(words[i], "--limit-ms")) limit_ms = value;
  }
  if (size < HEADER_BYTES) size = HEADER_BYTES;
  uint8_t *bytes = calloc(1, size);
  if (!bytes || members > MEMBERS_MAX) return 1;
  cpg_callbacks_t callbacks = {.cpg_deliver_fn = deliver, .cpg_confchg_fn = change};
  struct cpg_name group = {.length = 6, .value = "rivals"};
  cpg_handle_t handle;
  uint64_t begun = now_ns();
  while (cpg_initialize(&handle, &callbacks) != CS_OK) {
    if (now_ns() - begun > 20 * SECOND) return fprintf(stderr, "no daemon\n"), 1;
    usleep(20000);
  }
  while (cpg_join(handle, &group) == CS_ERR_TRY_AGAIN) usleep(20000);
  struct pollfd wait = {.events = POLLIN};
  cpg_fd_get(handle, &wait.fd);

  /* Repeated: a member that sees all earlier than others may be the only one that does. */
  for (uint64_t due = 0; !have_started();) {
    if (here >= members && now_ns() > due && send_all(handle, START, 0, 0, bytes, HEADER_BYTES))
      due = now_ns() + SECOND / 2;
    poll(&wait, 1, 10);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
    if (now_ns() - begun > 60 * SECOND) return fprintf(stderr, "not all have come\n"), 1;
  }
  warm_up(handle, &wait, warm_ms * 1000000u, bytes, size);
  wait_for_line(handle, wait.fd);
  begun = now_ns();
  uint64_t cpu = cpu_ns();

  for (int has_ended = 0; now_ns() - begun < limit_ms * 1000000u && !(has_ended && is_whole());) {
    int work = 0;
    /* When the next message is due, however late it goes: a sender that is held up must not hide
     * that. */
    uint64_t due = begun;
    for (int i = 0; i < AT_ONCE; i++) {
      if (rate) due = begun + (sent + 1) * SECOND / rate;
      if (messages ? sent >= messages : now_ns() - begun >= send_ms * 1000000u) break;
      if (now_ns() < due || !send_all(handle, DATA, sent, due, bytes, size)) break;
      sent++, work = 1;
    }
    if (!has_ended && (messages ? sent >= messages : now_ns() - begun >= send_ms * 1000000u))
      has_ended = send_all(handle, END, 0, sent, bytes, HEADER_BYTES);
    uint64_t before = received;
    cpg_dispatch(handle, CS_DISPATCH_ALL);
    if (work || before != received) continue;
    uint64_t now = now_ns(), nap = rate && due > now ? due - now : SECOND / 1000;
    struct timespec time = {.tv_nsec = (long)(nap < SECOND / 1000 ? nap : SECOND / 1000)};
    ppoll(&wait, 1, &time, NULL);
  }
  print_result(sent, cpu_ns() - cpu);
  for (;;) {
    poll(&wait, 1, 1000);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
  }
}
