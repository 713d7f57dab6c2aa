package env

import "io"

// Option configures Boot and Start.
type Option func(*options)

type options struct {
	controllers bool
	accounts    bool
	bare        bool
	crds        []string
	flags       []flag
	progress    io.Writer
	test        string // the name of the test, if there is one
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

func (o options) programs() []string {
	names := []string{etcdProgram, apiServerProgram, "kubectl"}
	if o.controllers {
		names = append(names, controllersProgram)
	}
	return names
}

// WithControllers also runs kube-controller-manager, with the namespace controller
// and the garbage collector. They share the user system:kube-controller-manager.
// Without this option, they may run, too: in a control plane of the pool.
func WithControllers() Option { return func(o *options) { o.controllers = true } }

// WithControllerAccounts is WithControllers with a service account for each
// controller, as in most clusters.
func WithControllerAccounts() Option {
	return func(o *options) { o.controllers, o.accounts = true, true }
}

// WithoutCRDs installs no CRDs: neither Gateway API's nor those of examples/crds.
func WithoutCRDs() Option { return func(o *options) { o.bare = true } }

// WithCRDs also installs the CRDs in these files or folders.
func WithCRDs(paths ...string) Option {
	return func(o *options) { o.crds = append(o.crds, paths...) }
}

// WithAPIServerFlag sets a flag of kube-apiserver, named without its dashes.
func WithAPIServerFlag(name string, values ...string) Option {
	return func(o *options) { o.flags = append(o.flags, flag{name, values}) }
}

// WithProgress makes Boot print each of its steps.
func WithProgress(w io.Writer) Option { return func(o *options) { o.progress = w } }
