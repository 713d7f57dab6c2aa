package commands

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"overrule.dev/overrule/internal/cli/printers"
)

// terminal is where a command reads and writes, and what it has said.
type terminal struct {
	genericiooptions.IOStreams
	// color is set if stdout is a terminal that supports colors.
	color   bool
	output  printers.Format
	verbose bool
	// said is what isNew was called with.
	said map[string]bool
	// notes are warnings that a report has, too.
	notes []string
	// remarks are notes that come last in a report.
	remarks []string
}

// printer returns the printer for the format of the flags.
func (t *terminal) printer() printers.Printer {
	return printers.Printer{Out: t.Out, Format: t.output, Color: t.color}
}

// infof prints a line to stderr.
func (t *terminal) infof(format string, args ...any) {
	_, _ = fmt.Fprintf(t.ErrOut, format+"\n", args...) // a failed write to stderr cannot be reported
}

// warnf prints a warning to stderr.
func (t *terminal) warnf(format string, args ...any) { t.infof("warning: "+format, args...) }

// warnOnce prints a warning, unless it was printed before.
func (t *terminal) warnOnce(text string) {
	if t.isNew(text) {
		t.warnf("%s", text)
	}
}

// isNew reports whether it is called with a text for the first time.
func (t *terminal) isNew(text string) bool {
	if t.said == nil {
		t.said = make(map[string]bool)
	}
	known := t.said[text]
	t.said[text] = true
	return !known
}

// notef prints a warning to stderr that a report has, too.
func (t *terminal) notef(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
	t.warnf(format, args...)
}
