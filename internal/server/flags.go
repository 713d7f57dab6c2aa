package server

import (
	"cmp"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/webhookconfig"
)

// options are the values of the flags.
type options struct {
	kubeconfig       string
	namespace        string
	service          string
	servicePort      int32
	webhookAddress   string
	metricsAddress   string
	healthAddress    string
	pprofAddress     string
	enforcement      guard.Enforcement
	audit            bool
	blastRadius      int
	maxMatches       int
	failurePolicy    admissionregistrationv1.FailurePolicyType
	manageWebhooks   bool
	coordination     string
	webhookTimeout   time.Duration
	leaseDuration    time.Duration
	peerBindAddress  string
	peerAddress      string
	logLevel         string
	logFormat        string
	maxConcurrent    int
	maxQueue         int
	maxBytes         resource.QuantityValue
	maxObjectBytes   resource.QuantityValue
	certificates     string
	certDir          string
	certificateName  string
	caValidity       time.Duration
	certValidity     time.Duration
	clientCA         string
	clientSubjects   []string
	requirePathToken bool
	drainPeriod      time.Duration
	refresh          refreshOptions
}

// NewCommand returns the command of the server, with its subcommands.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "overrule",
		Short: "Evaluate writes of policies, routes and gateways by their effective policies",
		Long: `overrule is an admission server for Kubernetes policy attachment. Before a
policy, a route or a gateway is stored it computes how the write changes the
effective policy of every path that it affects, returns warnings, and denies
writes that violate a constraint or remove an override.

In a cluster it needs no flags. See docs/install.md for the manifests, and
docs/reference.md for flags and metrics.`,
		Args:          cobra.NoArgs,
		Version:       build.Read().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.complete()
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	o.bind(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("audit", "enforcement")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cliflag.Error(err) })
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(uninstallWebhooks(), build.Command("overrule"))
	return cmd
}

func (o *options) bind(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "overrule-system"), "namespace of the server, its Secrets and its Lease; exempt from evaluation")
	f.StringVar(&o.service, "service", "overrule", "Service of the server")
	f.Int32Var(&o.servicePort, "service-port", 443, "port of the Service")
	f.StringVar(&o.webhookAddress, "webhook-bind-address", ":9443", "address to serve admission reviews on (HTTPS)")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", `address to serve /metrics on (HTTP), "0" for none`)
	f.StringVar(&o.healthAddress, "health-bind-address", ":8081", "address to serve /healthz and /readyz on (HTTP)")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "0", `loopback address to serve profiles on (HTTP), such as 127.0.0.1:6060; "0" for none`)
	cliflag.EnumVar(f, &o.enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "deny; warn: allow all writes and return warnings for what would be denied; or audit: allow all writes and report only in the audit log, metrics and Events")
	f.BoolVar(&o.audit, "audit", false, "short for --enforcement=audit, for a first rollout")
	f.IntVar(&o.maxMatches, "max-matches", guard.DefaultMatchLimit, "number of matches that the routes of one namespace may have on one hostname of a Gateway, ListenerSet or Service; ten times as many paths at one Gateway (0: no limit)")
	f.IntVar(&o.blastRadius, "blast-radius-limit", 0, "number of paths whose effective policy one write may change without an acknowledgement (0: no limit)")
	cliflag.EnumVar(f, &o.failurePolicy, "failure-policy", admissionregistrationv1.Fail,
		[]admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}, "Fail or Ignore: what the API server does with a write when no replica can evaluate it. Fail is registered once the API server has reached the server")
	f.BoolVar(&o.manageWebhooks, "manage-webhooks", true, "write the webhook configurations and keep their rules and caBundle up to date")
	f.DurationVar(&o.webhookTimeout, "webhook-timeout", webhookconfig.DefaultTimeout, "how long the API server waits for a response, in whole seconds: timeoutSeconds of the webhooks, at most 30s")
	cliflag.EnumVar(f, &o.coordination, "coordination", coordinationLeader, []string{coordinationLeader, coordinationNone}, "leader: the replicas evaluate as one, by a leader to which the others forward writes; or none: each evaluates alone, for a single replica")
	f.DurationVar(&o.leaseDuration, "lease-duration", 0, "with --coordination=leader: how long the Lease of a leader that has crashed stays valid, in whole seconds (0: as short as possible, 7s with the default of --webhook-timeout)")
	f.StringVar(&o.peerBindAddress, "peer-bind-address", ":9444", "with --coordination=leader: address to serve other replicas on (HTTPS with client certificates)")
	f.StringVar(&o.peerAddress, "peer-address", "", "with --coordination=leader: HOST:PORT at which other replicas reach this one (default: $POD_IP and the port of --peer-bind-address)")
	cliflag.EnumVar(f, &o.logLevel, "log-level", "info", []string{"error", "info", "debug"}, "error, info or debug (debug has a line for each decision)")
	cliflag.EnumVar(f, &o.logFormat, "log-format", "json", []string{"json", "text"}, "json or text")
	f.IntVar(&o.maxConcurrent, "max-concurrent", 0, "reviews evaluated at once (0: two for each CPU)")
	f.IntVar(&o.maxQueue, "max-queue", 0, "reviews that wait for evaluation; more are rejected (0: 1024)")
	f.Var(&o.maxBytes, "max-bytes", "bytes of reviews in memory at once, such as 64Mi; more wait to be read (0: 64Mi)")
	f.Var(&o.maxObjectBytes, "max-object-bytes", "size of the largest custom resource, as JSON, that etcd stores; larger ones are denied (0: 1536Ki, etcd's default)")
	cliflag.EnumVar(f, &o.certificates, "certificates", certificatesSelf, []string{certificatesSelf, certificatesFiles, certificatesCertManager}, "where the serving certificate comes from: self (an authority of its own), files, or cert-manager (files that cert-manager issues)")
	f.StringVar(&o.certDir, "cert-dir", "/etc/overrule/certs", "directory of tls.crt, tls.key and ca.crt; reloaded when they change")
	f.StringVar(&o.certificateName, "certificate-name", "overrule-serving", "cert-manager Certificate whose Secret is mounted at --cert-dir")
	f.DurationVar(&o.caValidity, "ca-validity", certs.DefaultCAValidity, "validity of the certificate authority")
	f.DurationVar(&o.certValidity, "cert-validity", certs.DefaultLeafValidity, "validity of serving certificates, at most a third of --ca-validity")
	f.StringVar(&o.clientCA, "client-ca-file", "", "file of the CAs that sign client certificates; reloaded when it changes (default: clients need no certificate)")
	f.StringArrayVar(&o.clientSubjects, "client-subject", nil, "common name or subject alternative name that client certificates must have; repeatable (default: any)")
	f.BoolVar(&o.requirePathToken, "require-path-token", false, "with --manage-webhooks=false: the path of a webhook call must end with a token in the Secret overrule-path")
	f.DurationVar(&o.drainPeriod, "drain-period", 5*time.Second, "how long to continue to respond after SIGTERM, while endpoints are updated")
	o.refresh.bind(f)
}

// complete sets the options of short flags.
func (o *options) complete() {
	if o.audit {
		o.enforcement = guard.EnforceAudit
	}
}
