package printers

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// maxCandidates is the number of rules that are listed for a request at one gateway.
const maxCandidates = 20

// request writes where a request goes; nothing for nil.
func (w *textWriter) request(r *api.ServedRequest) {
	if r == nil {
		return
	}
	verdict := paint(green, "served")
	if !r.Served {
		verdict = paint(red, "not served")
	}
	w.line(paint(bold, r.Request), ": ", verdict)
	if r.Message != "" {
		w.line("  ", paint(yellow, r.Message))
	}
	for _, at := range r.At {
		w.requestAt(at)
	}
}

func (w *textWriter) requestAt(at api.RequestAt) {
	if at.Served {
		w.line("  by ", paint(bold, api.PathText(at.Path)), paint(dim, foundBy(at.Match, at.Hostname)))
	} else {
		w.line("  not by ", paint(bold, api.PathText(at.Path)), ": ", paint(yellow, at.Message))
	}
	for _, a := range at.Assumptions {
		w.line("    assumed (", string(a.Code), "): ", paint(plain, a.Message))
	}
	others := slices.DeleteFunc(slices.Clone(at.Candidates), func(c api.RequestCandidate) bool { return c.After == "" })
	for i, c := range others {
		if i == maxCandidates {
			w.line("    ", fmt.Sprintf("and %d more rules", len(others)-i))
			return
		}
		w.line("    ", candidateLine(c))
	}
}

// foundBy returns the match and the hostname by which a rule is found, as a suffix.
func foundBy(match, hostname string) string {
	out := ""
	if match != "" {
		out = ", match " + match
	}
	if hostname != "" {
		out += ", hostname " + hostname
	}
	return out
}

// candidateLine returns a rule that matches a request and does not serve it, and why.
func candidateLine(c api.RequestCandidate) string {
	route := api.Ref{Kind: strings.TrimSuffix(c.Rule.Kind, "Rule"), Namespace: c.Rule.Namespace, Name: c.Rule.Name}
	return paint(plain, "not "+route.String()+"#"+c.Rule.Section) + paint(dim, foundBy(c.Match, c.Hostname)) + ": " + paint(plain, precedenceText(c.After))
}

// precedenceText says why the first rule precedes one.
func precedenceText(p api.Precedence) string {
	text, ok := map[api.Precedence]string{
		api.ByHostname:          "a more specific hostname is first",
		api.ByRegularExpression: "the implementation orders regular expressions and other paths",
		api.ByExactPath:         "an exact path is first",
		api.ByLongerPath:        "a longer path is first",
		api.ByGRPCService:       "a longer service is first",
		api.ByGRPCMethod:        "a longer gRPC method is first",
		api.ByMethod:            "a match with a method is first",
		api.ByHeaders:           "a match with more headers is first",
		api.ByQueryParams:       "a match with more query parameters is first",
		api.ByOlderRoute:        "the older route is first",
		api.ByName:              "the route with the first namespace and name is first",
		api.ByEarlierRule:       "the earlier rule of a route is first",
		api.ByListener:          "a listener with a more specific hostname is first",
	}[p]
	if !ok {
		return string(p)
	}
	return text
}
