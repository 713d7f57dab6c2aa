package main

// painter adds terminal colors to text if it is on.
type painter struct{ on bool }

// newPainter returns a painter that is on for a terminal unless NO_COLOR is set.
func newPainter(terminal bool, getenv func(string) string) painter {
	return painter{on: terminal && getenv("NO_COLOR") == ""}
}

func (p painter) title(s string) string   { return p.wrap("1;36", s) }
func (p painter) command(s string) string { return p.wrap("1", s) }
func (p painter) stderr(s string) string  { return p.wrap("33", s) }

func (p painter) wrap(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
