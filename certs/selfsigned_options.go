package certs

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// Defaults of Options.
const (
	DefaultCAValidity       = 365 * 24 * time.Hour
	DefaultLeafValidity     = 30 * 24 * time.Hour
	DefaultPropagationDelay = time.Minute
	DefaultPollInterval     = time.Minute
)

// Limits of Options.
const (
	// MinLeafValidity keeps lifetimes well above the resolution of X.509 dates, one
	// second.
	MinLeafValidity = 5 * time.Second
	// MinCALives is the minimum lifetime of an authority, in leaf lifetimes: it is
	// replaced after two thirds of its lifetime and must then outlast a whole leaf.
	MinCALives = 3
)

// Options configures an Authority. Secrets, Namespace, SecretName and Names are
// required.
type Options struct {
	// Secrets is the client, such as a kubernetes.Interface's CoreV1().
	Secrets corev1client.SecretsGetter
	// Namespace and SecretName are the Secret that the replicas share.
	Namespace, SecretName string
	// Names are the DNS names and IP addresses to serve; see ServiceNames.
	Names []string

	// CAValidity is the lifetime of an authority (default DefaultCAValidity).
	CAValidity time.Duration
	// LeafValidity is the lifetime of a serving certificate (default
	// DefaultLeafValidity), at most a third of CAValidity.
	LeafValidity time.Duration
	// PublishTimeout is how long a staged authority waits for Published before it
	// starts to sign anyway. It covers bundles that people copy by hand (default a
	// twelfth of CAValidity).
	PublishTimeout time.Duration
	// PropagationDelay is how long a published bundle takes to be used by every API
	// server (default DefaultPropagationDelay, less for short lifetimes).
	PropagationDelay time.Duration
	// PollInterval is how often the Secret is read without a watch event (default
	//  DefaultPollInterval, less for short lifetimes).
	PollInterval time.Duration

	// Clock defaults to the real clock.
	Clock clock.Clock
	// Log gets one line for each phase of a rotation and for each failure.
	Log logr.Logger

	usages []x509.ExtKeyUsage // of leaves, besides that of a server
}

// complete returns o with defaults, or all errors of o.
func (o Options) complete() (Options, error) {
	o.Names = slices.Clone(o.Names)
	o.CAValidity = cmp.Or(o.CAValidity, DefaultCAValidity)
	o.LeafValidity = cmp.Or(o.LeafValidity, DefaultLeafValidity)
	o.PublishTimeout = cmp.Or(o.PublishTimeout, o.CAValidity/12)
	o.PropagationDelay = cmp.Or(o.PropagationDelay, min(DefaultPropagationDelay, o.CAValidity/60))
	o.PollInterval = cmp.Or(o.PollInterval, min(DefaultPollInterval, o.LeafValidity/20))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, errors.Join(o.checkTarget(), o.checkLifetimes())
}

func (o Options) checkTarget() error {
	var errs []error
	if o.Secrets == nil {
		errs = append(errs, errors.New("certificates: no client for secrets given"))
	}
	if o.Namespace == "" || o.SecretName == "" {
		errs = append(errs, fmt.Errorf("certificates: secret %q/%q: namespace and name are required", o.Namespace, o.SecretName))
	}
	if len(o.Names) == 0 || slices.Contains(o.Names, "") {
		errs = append(errs, fmt.Errorf("certificates: names to serve %q: must have at least one, and none empty", o.Names))
	}
	return errors.Join(errs...)
}

func (o Options) checkLifetimes() error {
	var errs []error
	if o.LeafValidity < MinLeafValidity {
		errs = append(errs, fmt.Errorf("certificates: serving certificate validity %s is too short: must be at least %s", o.LeafValidity, MinLeafValidity))
	}
	if o.CAValidity < MinCALives*o.LeafValidity {
		errs = append(errs, fmt.Errorf("certificates: authority validity %s is less than %d times the %s of a serving certificate: increase it, or decrease that of the serving certificate",
			o.CAValidity, MinCALives, o.LeafValidity))
	}
	if min(o.PublishTimeout, o.PropagationDelay, o.PollInterval) < 0 {
		errs = append(errs, errors.New("certificates: publish timeout, propagation delay and poll interval must not be negative"))
	}
	return errors.Join(errs...)
}

// rules returns the parts of o that decide on rotation.
func (o Options) rules() rotationRules {
	return rotationRules{
		name:           o.SecretName,
		caValidity:     o.CAValidity,
		leafValidity:   o.LeafValidity,
		publishTimeout: o.PublishTimeout,
		// A new leader may be one poll behind, and publish an older bundle again
		// until it has read the Secret.
		propagation: o.PropagationDelay + o.PollInterval,
	}
}
