package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"strings"
)

// executed counts the statements that are executed of the packages that the
// binary was built to cover: a stand-in for instructions, which few containers
// let a process count.
func executed(ctx context.Context, ops int, all func() error) (map[string]int64, error) {
	if err := coverage.ClearCounters(); err != nil {
		return nil, fmt.Errorf("clear the counters of statements: %w; build this with -cover -covermode=atomic, as hack/cost does", err)
	}
	if err := all(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "cost")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the counters: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := coverage.WriteCountersDir(folder); err != nil {
		return nil, fmt.Errorf("write the counters of statements: %w", err)
	}
	if err := coverage.WriteMetaDir(folder); err != nil {
		return nil, fmt.Errorf("write what the counters mean: %w", err)
	}
	profile, err := textOf(ctx, folder)
	if err != nil {
		return nil, err
	}
	n, err := sum(profile)
	if err != nil {
		return nil, err
	}
	return map[string]int64{statements: per(n, ops)}, nil
}

// textOf returns the counters in a folder as a coverage profile.
func textOf(ctx context.Context, folder string) ([]byte, error) {
	path := filepath.Join(folder, "profile")
	cmd := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", folder, "-o", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("read the counters of statements: %s: %w", bytes.TrimSpace(out), err)
	}
	profile, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the counters of statements: %w", err)
	}
	return profile, nil
}

// sum adds up a coverage profile: after its first line, each line is a block of
// statements, how many there are, and how often they were executed.
func sum(profile []byte) (uint64, error) {
	var total uint64
	lines := bufio.NewScanner(bytes.NewReader(profile))
	for first := true; lines.Scan(); first = false {
		if first {
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 {
			return 0, fmt.Errorf("%q is no line of a coverage profile", lines.Text())
		}
		size, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a number of statements in a coverage profile: %w", err)
		}
		times, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("a count in a coverage profile: %w", err)
		}
		total += size * times
	}
	return total, lines.Err()
}
