package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// ConditionPassing is a condition of the leader's Pod: True after a run that passed,
// False after one that failed, else Unknown.
const ConditionPassing corev1.PodConditionType = api.AnnotationPrefix + "CanaryPassing"

// Pod writes the condition of the pod that this process runs in. Without a Name it
// writes none.
type Pod struct {
	Client          corev1client.PodsGetter
	Namespace, Name string
	Log             logr.Logger

	mu          sync.Mutex
	last        *corev1.PodCondition
	failed      bool // last is not written
	uid         types.UID
	lastProblem string // the last one logged
}

// SetCondition sets the condition. It computes the times.
func (p *Pod) SetCondition(ctx context.Context, status corev1.ConditionStatus, reason, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setCondition(ctx, status, reason, message)
}

// Idle reports that the pod is not the leader, unless a condition was set before: its
// container may have been restarted while it was the leader.
func (p *Pod) Idle(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.setCondition(ctx, corev1.ConditionUnknown, reasonNotLeading, notLeading)
	}
}

// retryTimeout limits a repeated write, because other writes wait for it.
const retryTimeout = 2 * time.Second

// Retry writes the condition if the last write failed.
func (p *Pod) Retry(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed {
		p.write(ctx)
	}
}

func (p *Pod) setCondition(ctx context.Context, status corev1.ConditionStatus, reason, message string) {
	now := metav1.Now()
	c := corev1.PodCondition{
		Type: ConditionPassing, Status: status, Reason: reason, Message: message,
		LastProbeTime: now, LastTransitionTime: now,
	}
	if p.last != nil && p.last.Status == status {
		c.LastTransitionTime = p.last.LastTransitionTime
	}
	p.last = &c
	if p.Name == "" {
		p.logProblem("canary condition is not written: --pod-name and POD_NAME are empty", nil)
		return
	}
	p.write(ctx)
}

// write writes the last condition.
func (p *Pod) write(ctx context.Context) {
	pod, err := p.patch(ctx, *p.last)
	p.failed = err != nil
	if err != nil {
		p.logProblem(err.Error(), err)
		return
	}
	p.uid, p.lastProblem = pod.UID, ""
}

func (p *Pod) patch(ctx context.Context, c corev1.PodCondition) (*corev1.Pod, error) {
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{c}}})
	if err != nil {
		return nil, fmt.Errorf("write condition %s as JSON: %w", c.Type, err)
	}
	// A strategic merge patch changes only the condition of this type.
	pod, err := p.Client.Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "overrule"}, "status")
	if err != nil {
		return nil, fmt.Errorf("write condition %s of pod %s/%s: %w", c.Type, p.Namespace, p.Name, err)
	}
	return pod, nil
}

// logProblem logs a problem unless it was the last one logged.
func (p *Pod) logProblem(problem string, err error) {
	if problem == p.lastProblem {
		return
	}
	p.lastProblem = problem
	if err == nil {
		p.Log.Info(problem)
		return
	}
	p.Log.Error(err, "cannot write the canary condition")
}

// Ref returns a reference to the pod for Events, nil if it has no name.
func (p *Pod) Ref() *corev1.ObjectReference {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Name == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.uid}
}
