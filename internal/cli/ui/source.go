package ui

import (
	"context"
	"errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// ErrInput is the error of a question that cannot be answered as it was asked, such as
// an invalid request or manifest.
var ErrInput = errors.New("invalid input")

// ErrNotFound is the error of a question about an object that does not exist.
var ErrNotFound = errors.New("not found")

// Source loads the objects that the page shows.
type Source interface {
	// Name says where the objects are read from, such as "manifests/".
	Name() string
	// Load returns the current objects.
	Load(ctx context.Context) (State, error)
	// Wait returns when the objects, or whether they can be read, may have changed.
	Wait(ctx context.Context) error
	// Close ends what Wait waits for.
	Close() error
}

// State answers questions about the objects of one moment. It is safe for concurrent
// use.
type State interface {
	// Objects returns the objects that can be searched for, sorted.
	Objects() []Object
	// Object explains the effective policies on the paths of an object.
	Object(ctx context.Context, q ObjectQuery) (*ObjectAnswer, error)
	// Picture draws the effective policies on the paths of an object as SVG; link
	// returns the address of the view of an object.
	Picture(ctx context.Context, q ObjectQuery, link func(kind, namespace, name string) string) (string, error)
	// Request explains the effective policies on the paths of a request.
	Request(ctx context.Context, q RequestQuery) (*Explanations, error)
	// Violations returns the violations in existing policies, at most limit.
	Violations(ctx context.Context, limit int) (*Violations, error)
	// Change evaluates a change without making it.
	Change(ctx context.Context, c Change) (*ChangeAnswer, error)
	// Manifest returns an object as YAML.
	Manifest(ctx context.Context, q ObjectQuery) (string, error)
	// Warnings says what could not be read.
	Warnings() []string
}

// Object is an object that can be searched for.
type Object struct {
	Ref api.Ref `json:"ref"`
	// Policy is true for a policy.
	Policy bool `json:"policy,omitempty"`
	// Hostnames are those of a route, or of the listeners of a gateway.
	Hostnames []string `json:"hostnames,omitempty"`
	// Rules are the keys of the rules of a policy, or the names of those of a route.
	Rules []string `json:"rules,omitempty"`
	// Targets are those of a policy, or the parents of a route.
	Targets []api.Ref `json:"targets,omitempty"`
}

// ObjectQuery names an object.
type ObjectQuery struct {
	// Kind is its kind, with or without the group: HTTPRoute, AuthPolicy.kuadrant.io.
	Kind            string
	Namespace, Name string
	// Limit is the number of paths to explain.
	Limit int
}

// Explanations explains the effective policies on paths.
type Explanations struct {
	api.ExplanationList `json:",inline"`
	// Total is the number of paths, of which the items may be the first ones.
	Total int `json:"total"`
}

// ObjectAnswer is what holds on the paths of an object.
type ObjectAnswer struct {
	Explanations
	Object Object `json:"object"`
	// Outcomes are those of the policies on the paths, or that target the object.
	Outcomes []api.Outcome `json:"outcomes"`
	// Namespaces has the labels of the namespaces of these policies: they often name
	// who owns them.
	Namespaces map[string]map[string]string `json:"namespaces"`
}

// RequestQuery describes a request as the flags of the command effective do.
type RequestQuery struct {
	Request                       string
	Headers                       []string
	Gateway, ClientNamespace, SNI string
	// Port is that of the listener, 0 for that of the URL.
	Port int32
	// Limit is the number of paths to explain.
	Limit int
}

// Violations are violations in existing policies.
type Violations struct {
	api.ViolationList `json:",inline"`
	// Total is their number, of which the items may be the first ones.
	Total    int      `json:"total"`
	Warnings []string `json:"warnings,omitempty"`
}

// Change is a change to try.
type Change struct {
	// Manifest has the objects as YAML or JSON.
	Manifest string `json:"manifest"`
	// Delete is true to delete them.
	Delete bool `json:"delete"`
	// Limit is the number of differences to return.
	Limit int `json:"-"`
}

// ChangeAnswer is what the admission server would answer to a change, and what the
// change does to effective policies.
type ChangeAnswer struct {
	Verdicts api.VerdictList `json:"verdicts"`
	Changes  api.ChangeList  `json:"changes"`
	// Total is the number of changed paths, of which the items may be the first ones.
	Total    int      `json:"total"`
	Warnings []string `json:"warnings,omitempty"`
}
