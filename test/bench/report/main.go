// Command report reads what benchmarks printed (files, or standard input) and
// prints the table of limits as Markdown.
package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/perf/benchfmt"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run prints the tables of the results in all files, or in standard input if
// there is no file.
func run(files []string, out io.Writer) error {
	results, err := read(files)
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	return writeTables(out, figuresOf(results))
}

// read returns the results, and skips other lines.
func read(files []string) ([]*benchfmt.Result, error) {
	var out []*benchfmt.Result
	reader := benchfmt.Files{Paths: files, AllowStdin: true}
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			out = append(out, record.Clone())
		case *benchfmt.SyntaxError:
			return nil, record
		}
	}
	return out, reader.Err()
}
