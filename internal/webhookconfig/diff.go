package webhookconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// differences describes how the existing webhooks differ from the wanted ones. Webhooks
// of others are ignored. bundles is false if another client writes the caBundle; then it
// only has to be present where one is wanted. Paths are never included, because they may
// have a secret token.
func differences(want, live []webhook, bundles bool) []string {
	var out []string
	for _, w := range want {
		i := slices.IndexFunc(live, func(h webhook) bool { return h.Name == w.Name })
		if i < 0 {
			out = append(out, w.Name+" is missing")
			continue
		}
		for _, difference := range webhookDifferences(w, live[i], bundles) {
			out = append(out, w.Name+": "+difference)
		}
	}
	return out
}

// webhookDifferences describes how a webhook h differs from the wanted w.
func webhookDifferences(w, h webhook, bundles bool) []string {
	var out []string
	add := func(differs bool, difference string) {
		if differs {
			out = append(out, difference)
		}
	}
	differ := func(field string, want, live any) {
		add(!equality.Semantic.DeepEqual(want, live), field+" differs")
	}
	value := func(field string, want, live any, advice string) {
		add(!equality.Semantic.DeepEqual(want, live), fmt.Sprintf("%s is %s, expected %s%s", field, jsonValue(live), jsonValue(want), advice))
	}
	add(h.ClientConfig.URL != nil || !equality.Semantic.DeepEqual(w.ClientConfig.Service, h.ClientConfig.Service),
		fmt.Sprintf("clientConfig does not point to Service %s with the expected path and port", serviceOf(w)))
	add(len(h.ClientConfig.CABundle) == 0 && (bundles || len(w.ClientConfig.CABundle) > 0), "caBundle is empty")
	add(bundles && len(w.ClientConfig.CABundle) > 0 && len(h.ClientConfig.CABundle) > 0 && !bytes.Equal(w.ClientConfig.CABundle, h.ClientConfig.CABundle),
		"caBundle differs")
	if !equality.Semantic.DeepEqual(w.Rules, h.Rules) {
		out = append(out, diffRules(w.Rules, h.Rules))
	}
	value("failurePolicy", w.FailurePolicy, h.FailurePolicy, "")
	value("timeoutSeconds", w.TimeoutSeconds, h.TimeoutSeconds, timeoutAdvice(w))
	value("matchPolicy", w.MatchPolicy, h.MatchPolicy, "")
	value("sideEffects", w.SideEffects, h.SideEffects, "")
	value("reinvocationPolicy", w.ReinvocationPolicy, h.ReinvocationPolicy, "")
	differ("namespaceSelector", w.NamespaceSelector, h.NamespaceSelector)
	differ("objectSelector", w.ObjectSelector, h.ObjectSelector)
	add(!equality.Semantic.DeepEqual(w.AdmissionReviewVersions, h.AdmissionReviewVersions), "admissionReviewVersions differ")
	add(!equalConditions(w.MatchConditions, h.MatchConditions), "matchConditions differ")
	return out
}

// timeoutAdvice says how to change the timeoutSeconds of a webhook, if that is possible.
func timeoutAdvice(w webhook) string {
	if w.Name == systemWebhook {
		return ""
	}
	return " (set --webhook-timeout instead)"
}

// equalConditions compares conditions without white space, which a manifest may add.
func equalConditions(a, b []admissionregistrationv1.MatchCondition) bool {
	return slices.EqualFunc(a, b, func(a, b admissionregistrationv1.MatchCondition) bool {
		return a.Name == b.Name && withoutSpace(a.Expression) == withoutSpace(b.Expression)
	})
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// serviceOf returns the Service that a webhook points to, "" for none.
func serviceOf(h webhook) string {
	if s := h.ClientConfig.Service; s != nil {
		return s.Namespace + "/" + s.Name
	}
	return ""
}

// jsonValue returns a scalar field as it stands in a manifest.
func jsonValue(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(string(data), `"`)
}

// rulesDiffer describes rules that differ and cover all that is wanted.
const rulesDiffer = "rules differ"

// diffRules names the resources that rules do not cover, each with its operation: writes
// of these are not evaluated.
func diffRules(want, live []admissionregistrationv1.RuleWithOperations) string {
	covered := coverage(live)
	var missing []string
	for what := range coverage(want) {
		if !covered[what] {
			missing = append(missing, what)
		}
	}
	if len(missing) == 0 {
		return rulesDiffer
	}
	slices.Sort(missing)
	const maxNamed = 5
	more := ""
	if n := len(missing) - maxNamed; n > 0 {
		missing, more = missing[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return "rules do not cover " + strings.Join(missing, ", ") + more
}

// coverage returns what rules of ours cover: "CREATE httproutes.gateway.networking.k8s.io".
func coverage(rules []admissionregistrationv1.RuleWithOperations) map[string]bool {
	out := make(map[string]bool)
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, operation := range rule.Operations {
					out[strings.TrimSuffix(string(operation)+" "+resource+"."+group, ".")] = true
				}
			}
		}
	}
	return out
}
