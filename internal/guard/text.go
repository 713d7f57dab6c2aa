package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// pathsText names the first of a number of paths.
func pathsText(e *effective.Effective, n int) string {
	return pathText(e) + api.More(" and ", n-1, "path")
}

// objectsText names the first of a number of objects that paths lead to.
func objectsText(e *effective.Effective, n int) string {
	text := endText(e)
	if e.Path.Route != nil {
		text = e.Path.Route.Ref().String()
	}
	return text + api.More(" and ", n-1, "")
}

// pathText names a path by what it is about, and where it comes from.
func pathText(e *effective.Effective) string {
	p := &e.Path
	if p.Route == nil {
		return endText(e)
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

// endText names the end of a path.
func endText(e *effective.Effective) string {
	elements := e.Path.Elements()
	return elements[len(elements)-1].String()
}

// entryText names how a path comes in: its listener, or else its end.
func entryText(e *effective.Effective) string {
	if e.Path.Listener != nil {
		return e.Path.Element(gateway.LevelListener).String()
	}
	return endText(e)
}

// objectText names the object that is written; its name may be yet to be generated.
func objectText(c Change) string {
	if ref := c.Object().Ref(); ref.Name != "" {
		return ref.String()
	}
	return "this"
}

// compactJSON returns a value as JSON on one line, cut where it gets long.
func compactJSON(v any) string {
	data, _ := json.Marshal(v) // it was decoded from some
	return truncated(string(data))
}

// truncated cuts a text that a writer made where it is too long for a message.
func truncated(text string) string {
	const most = 512
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func joinRefs(refs []api.Ref) string { return joinSome(refs, len(refs)) }

// joinSome names the first of a number of objects, of which it may name some.
func joinSome(some []api.Ref, all int) string {
	var names []string
	for _, ref := range some[:min(len(some), maxNamed)] {
		names = append(names, ref.String())
	}
	if more := all - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return api.JoinNames(names)
}

// WarningLength is the most characters that the API server does not cut a warning to, however
// many there are.
const WarningLength = 256

// shortText returns the first of some texts that is short enough for a warning, else the last.
func shortText(texts ...string) string {
	i := slices.IndexFunc(texts, func(text string) bool { return utf8.RuneCountInString(text) <= WarningLength })
	if i < 0 {
		i = len(texts) - 1
	}
	return texts[i]
}

// noteLength is the most bytes that the note of a Kubernetes Event may have.
const noteLength = 1024

// EventNote cuts a message to what a Kubernetes Event takes.
func EventNote(text string) string {
	const more = " …"
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) <= noteLength {
		return text
	}
	end := noteLength - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// objectOf returns the object that a path leads to: its route, else the object at its end.
func objectOf(e *effective.Effective) api.Ref {
	if e.Path.Route != nil {
		return e.Path.Route.Ref()
	}
	elements := e.Path.Elements()
	end := elements[len(elements)-1]
	return api.Ref{Kind: end.Kind, Namespace: end.Namespace, Name: end.Name}
}
