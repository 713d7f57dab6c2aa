package main

import (
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binary is a program that Go built for a platform.
type binary struct {
	os, arch, path string
	built          *debug.BuildInfo
}

// readBinaries reads arguments such as linux/arm64=bin/overrule, and looks
// whether each file is for the platform that it is given as.
func readBinaries(args []string) ([]binary, error) {
	var out []binary
	for _, arg := range args {
		platform, path, ok := strings.Cut(arg, "=")
		system, arch, isPlatform := strings.Cut(platform, "/")
		if !ok || !isPlatform || path == "" {
			return nil, fmt.Errorf("%q is no OS/ARCH=BINARY, such as linux/arm64=bin/overrule", arg)
		}
		b := binary{os: system, arch: arch, path: path}
		if slices.ContainsFunc(out, func(o binary) bool { return o.os == b.os && o.arch == b.arch }) {
			return nil, fmt.Errorf("%s is given twice: leave one out", platform)
		}
		built, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read what %s was built from: %w", path, err)
		}
		b.built = built
		if is := b.setting("GOOS") + "/" + b.setting("GOARCH"); is != platform {
			return nil, fmt.Errorf("%s is for %s and not for %s: build it with GOOS=%s GOARCH=%s", path, is, platform, system, arch)
		}
		out = append(out, b)
	}
	return out, nil
}

// setting is one of "go version -m", or "".
func (b binary) setting(key string) string {
	for _, s := range b.built.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// revision is the commit that it was built from, "" if nobody knows.
func (b binary) revision() string {
	commit := b.setting("vcs.revision")
	if commit != "" && b.setting("vcs.modified") == "true" {
		commit += "-dirty"
	}
	return commit
}

// moment is the time that what is made of it bears: SOURCE_DATE_EPOCH if that is
// set, else its commit's, else the beginning of 1970. Never the present, so that
// the same input gives the same bytes.
func (b binary) moment(sourceDateEpoch string) (time.Time, error) {
	if sourceDateEpoch != "" {
		seconds, err := strconv.ParseInt(sourceDateEpoch, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s is no number of seconds since 1970: correct it, or leave it out", sourceDateEpoch)
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	at := b.setting("vcs.time")
	if at == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: the time of its commit: %w", b.path, err)
	}
	return t.UTC(), nil
}
