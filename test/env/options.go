package env

import "io"

// Option changes what Boot and Start bring up.
type Option func(*options)

type options struct {
	controllers bool
	accounts    bool
	bare        bool
	crds        []string
	flags       []flag
	progress    io.Writer
}

type flag struct {
	name   string
	values []string
}

func gather(opts []Option) options {
	o := options{progress: io.Discard}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithControllers also runs kube-controller-manager, with the controllers that
// empty a deleted namespace and collect the dependents of a deleted owner.
// Without it, both are deleted and nothing follows. They share the one user
// system:kube-controller-manager.
func WithControllers() Option { return func(o *options) { o.controllers = true } }

// WithControllerAccounts is WithControllers with a service account for each
// controller, as most clusters have them.
func WithControllerAccounts() Option {
	return func(o *options) { o.controllers, o.accounts = true, true }
}

// WithoutCRDs installs no CRD: not Gateway API's, nor those of examples/crds.
func WithoutCRDs() Option { return func(o *options) { o.bare = true } }

// WithCRDs installs the CRDs in further files or folders.
func WithCRDs(paths ...string) Option {
	return func(o *options) { o.crds = append(o.crds, paths...) }
}

// WithAPIServerFlag sets a flag of kube-apiserver, named without its dashes.
func WithAPIServerFlag(name string, values ...string) Option {
	return func(o *options) { o.flags = append(o.flags, flag{name, values}) }
}

// WithProgress has Boot say what it does, one line an act.
func WithProgress(w io.Writer) Option { return func(o *options) { o.progress = w } }
