/* One member of a closed process group of Corosync, over libcpg: waits for all members, sends to all
 * in agreed (total) order, counts what comes, its own messages too. Prints lines of words, as the
 * members of the other sides do: started, view, result. Stays until it is killed.
 *
 * A message: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), number (64: of the
 * messages sent, in an end), little endian, and content.
 */
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
enum { START = 1, DATA = 2, END = 3 };

static const uint64_t SECOND = 1000000000u;

struct sender {
  uint64_t next, received, duplicated, disordered, sent;
  int has_ended, has_started, is_present;
};

static struct sender senders[MEMBERS_MAX];
static uint64_t received, first_at, last_at, longest_pause, sampled_at, order_hash = 1469598103934665603u;
static struct { uint64_t at, count; } samples[SAMPLES_MAX];
static unsigned sample_count, members = 2, here;

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

static void take(struct sender *sender, unsigned from, uint64_t sequence) {
  uint64_t now = now_ns();
  if (sequence < sender->next) {
    sender->duplicated++;
    return;
  }
  sender->disordered += sequence > sender->next;
  sender->next = sequence + 1;
  sender->received++;
  order_hash = (order_hash ^ (sequence * MEMBERS_MAX + from)) * 1099511628211u;
  if (first_at == 0) first_at = now;
  if (last_at != 0 && now - last_at > longest_pause) longest_pause = now - last_at;
  last_at = now;
  received++;
  if (now - sampled_at > SECOND / 50 && sample_count < SAMPLES_MAX) {
    sampled_at = now;
    samples[sample_count].at = now;
    samples[sample_count++].count = received;
  }
}

static void deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t pid,
                    void *bytes, size_t length) {
  (void)handle, (void)group, (void)node, (void)pid;
  const uint8_t *message = bytes;
  if (length < HEADER_BYTES || number(message + 4, 4) >= members) return;
  unsigned from = (unsigned)number(message + 4, 4);
  struct sender *sender = &senders[from];
  sender->has_started = 1;
  if (message[0] == DATA) take(sender, from, number(message + 8, 8));
  if (message[0] == END) {
    sender->sent = number(message + 16, 8);
    sender->has_ended = 1;
  }
}

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

static int is_whole(void) {
  for (unsigned i = 0; i < members; i++)
    if (senders[i].is_present && (!senders[i].has_ended || senders[i].received < senders[i].sent))
      return 0;
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

static int send_all(cpg_handle_t handle, uint8_t kind, uint32_t index, uint64_t sequence,
                    uint64_t sent, uint8_t *bytes, size_t length) {
  bytes[0] = kind;
  put(bytes + 4, index, 4);
  put(bytes + 8, sequence, 8);
  put(bytes + 16, sent, 8);
  struct iovec piece = {bytes, length};
  return cpg_mcast_joined(handle, CPG_TYPE_AGREED, &piece, 1) == CS_OK;
}

static double steady(void) {
  uint64_t middle = first_at + (last_at - first_at) / 2;
  for (unsigned i = 0; i < sample_count; i++)
    if (samples[i].at >= middle && last_at > samples[i].at)
      return (double)(received - samples[i].count) * 1e9 / (double)(last_at - samples[i].at);
  return 0;
}

int main(int count, char **words) {
  uint32_t index = 0;
  size_t size = 1000;
  uint64_t messages = 0, send_ms = 1000, limit_ms = 30000, sent = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    uint64_t value = strtoull(words[i + 1], NULL, 10);
    if (!strcmp(words[i], "--index")) index = (uint32_t)value;
    if (!strcmp(words[i], "--members")) members = (unsigned)value;
    if (!strcmp(words[i], "--size")) size = value;
    if (!strcmp(words[i], "--messages")) messages = value;
    if (!strcmp(words[i], "--send-ms")) send_ms = value;
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

  for (uint64_t due = 0; !have_started();) {
    if (here >= members && now_ns() > due && send_all(handle, START, index, 0, 0, bytes, HEADER_BYTES))
      due = now_ns() + SECOND / 2;
    poll(&wait, 1, 10);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
    if (now_ns() - begun > 60 * SECOND) return fprintf(stderr, "not all have come\n"), 1;
  }
  begun = now_ns();
  uint64_t cpu = cpu_ns();
  printf("started at=%" PRIu64 "\n", begun);
  fflush(stdout);

  for (int has_ended = 0; now_ns() - begun < limit_ms * 1000000u && !(has_ended && is_whole());) {
    int work = 0;
    for (int i = 0; i < AT_ONCE; i++) {
      if (messages ? sent >= messages : now_ns() - begun >= send_ms * 1000000u) break;
      if (!send_all(handle, DATA, index, sent, 0, bytes, size)) break;
      sent++, work = 1;
    }
    if (!has_ended && (messages ? sent >= messages : now_ns() - begun >= send_ms * 1000000u))
      has_ended = send_all(handle, END, index, 0, sent, bytes, HEADER_BYTES);
    uint64_t before = received;
    cpg_dispatch(handle, CS_DISPATCH_ALL);
    if (!work && before == received) poll(&wait, 1, 1);
  }
  uint64_t duplicated = 0, disordered = 0;
  for (unsigned i = 0; i < members; i++) {
    duplicated += senders[i].duplicated;
    disordered += senders[i].disordered;
  }
  printf("result sent=%" PRIu64 " cpu=%" PRIu64 " complete=%d received=%" PRIu64 " elapsed=%" PRIu64
         " steady=%.0f duplicated=%" PRIu64 " disordered=%" PRIu64 " pause=%" PRIu64 " hash=%" PRIx64 " by=",
         sent, cpu_ns() - cpu, is_whole(), received, last_at - first_at, steady(), duplicated,
         disordered, longest_pause, order_hash);
  for (unsigned i = 0; i < members; i++)
    printf("%s%" PRIu64, i ? "," : "", senders[i].received);
  printf("\n");
  fflush(stdout);
  for (;;) {
    poll(&wait, 1, 1000);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
  }
}
