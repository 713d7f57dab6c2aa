package ratelimit

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (r *reader) triggers(at *field.Path, value any) []Trigger {
	items := r.list(at, value, maxItems)
	var triggers []Trigger
	for i, item := range items {
		triggers = append(triggers, r.trigger(at.Index(i), item))
	}
	return triggers
}

func (r *reader) trigger(at *field.Path, value any) Trigger {
	before := len(r.errs)
	fields, ok := r.object(at, value, triggerObjectFields)
	if !ok {
		return Trigger{}
	}
	trigger := Trigger{
		Matches:   r.matches(at.Child("matches"), fields["matches"]),
		Hostnames: r.hostnames(at.Child("hostnames"), fields["hostnames"]),
	}
	if len(trigger.Matches) == 0 && len(trigger.Hostnames) == 0 && len(r.errs) == before {
		r.addError(field.Required(at, "set matches or hostnames, or remove the trigger to bind to every rule"))
	}
	return trigger
}

func (r *reader) matches(at *field.Path, value any) []Match {
	items := r.list(at, value, maxItems)
	var matches []Match
	for i, item := range items {
		matches = append(matches, r.match(at.Index(i), item))
	}
	return matches
}
