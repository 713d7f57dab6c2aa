package guard

import (
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// somePaths names the first of a number of paths.
func somePaths(e *effective.Effective, n int) string {
	text := pathText(e)
	if n > 1 {
		text += " and " + plural(n-1, "more path")
	}
	return text
}

// pathText names a path by what it is about, and where it comes from.
func pathText(e *effective.Effective) string {
	p := &e.Path
	if p.Route == nil {
		return last(e)
	}
	text := p.Route.Ref().String()
	if p.Rule >= 0 {
		text += " " + p.Route.RuleName(p.Rule)
	}
	if p.Backend != nil {
		text += " to " + p.Backend.Object.String()
	}
	switch {
	case p.Set != nil:
		text += " of " + p.Set.Ref().String()
	case p.Gateway != nil:
		text += " of " + p.Gateway.Ref().String()
	case p.Service != nil:
		text += " of " + p.Service.Ref().String()
	}
	return text
}

// last names the end of a path.
func last(e *effective.Effective) string {
	elements := e.Path.Elements()
	return elements[len(elements)-1].String()
}

// through names how a path comes in: its listener, or else its end.
func through(e *effective.Effective) string {
	if e.Path.Listener != nil {
		return e.Path.Element(gateway.LevelListener).String()
	}
	return last(e)
}
