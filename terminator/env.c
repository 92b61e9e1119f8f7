/* SPDX-License-Identifier: MIT */
#include "terminator/env.h"

#include "shm/base.h"
#include "workers/tls_ctx.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* First line of a file without its end, or null. */
static json_t *line_of(const char *path)
{
	char buf[512];
	FILE *f = fopen(path, "re");
	json_t *out = NULL;

	if (f == NULL)
		return json_null();
	if (fgets(buf, sizeof(buf), f) != NULL) {
		buf[strcspn(buf, "\n")] = '\0';
		out = json_string(buf);
	}
	fclose(f);
	return out != NULL ? out : json_null();
}

static json_t *number_of(const char *path)
{
	json_t *text = line_of(path);
	json_t *out = json_null();
	const char *s = json_string_value(text);

	if (s != NULL && isdigit((unsigned char)*s))
		out = json_integer(strtoll(s, NULL, 10));
	json_decref(text);
	return out;
}

/* Values of one key of /proc/cpuinfo, which has a block per CPU. */
static void cpuinfo(json_t *out)
{
	char line[1024];
	FILE *f = fopen("/proc/cpuinfo", "re");
	json_t *mhz = json_array(), *model = NULL;
	bool guest = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (colon == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if (model == NULL && strncmp(line, "model name", 10) == 0)
			model = json_string(colon + 2);
		else if (strncmp(line, "cpu MHz", 7) == 0)
			json_array_append_new(
				mhz,
				json_integer(strtoll(colon + 2, NULL, 10)));
		else if (strncmp(line, "flags", 5) == 0 &&
			 strstr(line, " hypervisor") != NULL)
			guest = true;
	}
	if (f != NULL)
		fclose(f);
	json_object_set_new(out, "cpu_model",
			    model != NULL ? model : json_null());
	json_object_set_new(out, "cpu_mhz", mhz);
	json_object_set_new(out, "virtual_machine", json_boolean(guest));
}

static void kernel(json_t *out)
{
	struct utsname u;

	if (uname(&u) < 0)
		return;
	json_object_set_new(out, "kernel", json_string(u.release));
	json_object_set_new(out, "machine", json_string(u.machine));
}

static void cpus_of(json_t *out, const struct plan_cpus *cpus)
{
	json_t *allowed = json_array();

	for (uint32_t i = 0; i < cpus->ncpu; i++)
		json_array_append_new(allowed, json_integer(cpus->cpu[i]));
	json_object_set_new(out, "cpus_online", json_integer(cpus->online));
	json_object_set_new(out, "cpus_allowed", allowed);
	json_object_set_new(out, "cpus_usable", json_integer(cpus->usable));
	json_object_set_new(out, "cpu_quota",
			    cpus->quota > 0 ? json_real(cpus->quota)
					    : json_null());
	json_object_set_new(out, "cpus_source", json_string(cpus->source));
}

static void programs(json_t *out, const char *ring_features)
{
	json_object_set_new(out, "tterm", json_string(TTERM_VERSION));
	json_object_set_new(out, "commit", json_string(base_commit()));
	json_object_set_new(out, "compiler", json_string(__VERSION__));
	json_object_set_new(out, "libc", json_string(gnu_get_libc_version()));
	json_object_set_new(out, "library", json_string(tls_library()));
	json_object_set_new(out, "library_built",
			    json_string(tls_library_built()));
	json_object_set_new(out, "io_uring", json_string(ring_features));
}

static void settings(json_t *out)
{
	static const struct {
		const char *key, *path;
		bool number;
	} row[] = {
		{"governor",
		 "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		 false},
		{"smt_active", "/sys/devices/system/cpu/smt/active", true},
		{"clocksource",
		 "/sys/devices/system/clocksource/clocksource0/"
		 "current_clocksource",
		 false},
		{"tcp_congestion_control",
		 "/proc/sys/net/ipv4/tcp_congestion_control", false},
		{"somaxconn", "/proc/sys/net/core/somaxconn", true},
		{"ip_local_port_range",
		 "/proc/sys/net/ipv4/ip_local_port_range", false},
		{"io_uring_disabled", "/proc/sys/kernel/io_uring_disabled",
		 true},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		json_object_set_new(out, row[i].key,
				    row[i].number ? number_of(row[i].path)
						  : line_of(row[i].path));
	json_object_set_new(out, "memory_bytes",
			    json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) *
					 sysconf(_SC_PAGESIZE)));
}

json_t *env_json(const struct plan_cpus *cpus, const char *ring_features)
{
	json_t *out = json_object();

	if (out == NULL)
		return NULL;
	programs(out, ring_features);
	kernel(out);
	cpuinfo(out);
	cpus_of(out, cpus);
	settings(out);
	return out;
}
