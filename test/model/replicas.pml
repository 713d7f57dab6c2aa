/*
 * How several replicas of Overrule evaluate writes as one: the Lease, forwarding, and
 * the handover from one leader to the next. README.md says how to run the model, what it
 * shows, and what it leaves out.
 *
 * Property: of two writes that conflict, at most one is stored. A write is denied if it
 * is evaluated with the other one in the cache or in the log of writes in flight. So both
 * are stored only if neither was evaluated with the other.
 *
 * Time is in ticks. Timers count down. Upper bounds are closed: a timer of K+1 permits
 * an action until K ticks have passed. Every process can stop between any two of its
 * steps while the clock runs: that is how a replica is paused and a message is delayed.
 *
 * DETAILED splits steps that are one step otherwise. The comments beside it say why one
 * step is enough.
 *
 * MIRROR is an extension that does not rely on T, S and clocks: a write is in the log of
 * every replica in the set "synced" before it is answered; see process Mirror.
 *
 * A macro marked "broken:" removes a rule of the protocol, or exceeds a bound that it
 * assumes. Each must lead to a violation: run checks that.
 */

#ifndef REPLICAS
#define REPLICAS 2
#endif
#ifndef TERMS
#define TERMS 3			/* terms that are explored; with 3, a replica leads again */
#endif
#define WRITES 2
#define NONE REPLICAS		/* no replica */

/* --- Bounds, in ticks ------------------------------------------------------------ */

#ifdef LONG_BOUNDS
#define V 3
#define T 2
#define S 2
#define D 2
#else
#define V 1	/* a leader evaluates until V after it sent its last successful renewal */
#define T 1	/* the API server waits T for an answer: timeoutSeconds of the webhook */
#define S 1	/* the API server stores a write within S of the answer, or never */
#define D 1	/* two clocks differ by at most D while a lease runs out */
#endif

/* A candidate waits LEASE after the last change of the Lease, by its own clock. */
#ifdef LEASE_ONLY		/* broken: the lease does not cover T and S */
#define LEASE (V + D + 1)
#elif defined(LEASE_AND_STORE)	/* broken: the lease does not cover T */
#define LEASE (V + S + D + 1)
#else
#define LEASE (V + T + S + D + 1)
#endif

/* The ticks that this takes at least: the clock of the leader is the exact one. */
#ifdef DRIFT			/* broken: the clocks differ by more than D */
#define WAIT (LEASE - D - 1)
#else
#define WAIT (LEASE - D)
#endif

#ifdef SLOW_STORE		/* broken: the API server takes longer than S */
#define STORE (S + 1)
#else
#define STORE S
#endif

/* --- The Lease, as it is stored -------------------------------------------------- */

#define RELEASED 1	/* by a leader with no write in flight: any replica may take it */
#define TRANSFERRED 2	/* to the holder, which has the log of the writes in flight */

byte holder = 0;	/* spec.holderIdentity */
byte term = 1;		/* uid, transitions and holder: no two terms are equal */
byte mark = 0;		/* RELEASED or TRANSFERRED: an annotation of the Lease */
byte leaseTimer = WAIT;	/* until a candidate can consider the Lease expired */

/* --- The replicas ---------------------------------------------------------------- */

#define FOLLOWER 0	/* forwards */
#define CATCHUP 1	/* holds the Lease; its cache may lack what was stored before */
#define LEADER 2	/* evaluates */
#define DRAIN 3		/* holds the Lease; does not evaluate in this term any more */

byte role[REPLICAS];
byte own[REPLICAS];	/* the term in which the replica acquired the Lease */
byte valid[REPLICAS];	/* timer: the lease is certainly valid, by its own clock */
byte cache[REPLICAS];	/* the writes that its watches have delivered; see Watch */
byte flight[REPLICAS];	/* the log of writes in flight: admitted, not yet observed */
byte got[REPLICAS];	/* the term whose log was handed over to it; 0: none */
#ifdef DETAILED
byte renewing[REPLICAS];/* 1: a renewal was sent, 2: it was stored */
byte sent[REPLICAS];	/* timer: what valid will be if that renewal succeeds */
bool listed[REPLICAS];	/* the new leader has its list, and waits for its cache */
byte list[REPLICAS];	/* what is in that list */
#endif

/* --- The writes ------------------------------------------------------------------ */

#define NEW 0		/* was never requested */
#define FAILED 1	/* the request failed; the client can send it again */
#define CALLED 2	/* the API server waits; the review is on its way to a leader */
#define EVALUATING 3	/* on the cache and the log of the moment when this began */
#define LOGGED 4	/* the evaluation ended, and the log has the write */
#define ANSWERED 5	/* "allowed" is on its way to the API server */
#define ADMITTED 6	/* the API server has the answer */
#define STORED 7

byte phase[WRITES];
byte timer[WRITES];	/* until the API server does not wait, or store, any more */
byte at[WRITES];	/* the replica that evaluates it */
byte began[WRITES];	/* the term in which the evaluation began */
#ifdef DETAILED
byte stamp[WRITES];	/* the term that the forward of its review carries */
#endif
bool stale[WRITES];	/* the log got the other write since the evaluation began */

byte stored;		/* the writes that are in etcd */

#ifdef MIRROR
byte synced;			/* in the Lease: the replicas that have the holder's log */
byte mirrors[REPLICAS];		/* the same, as a leader has it */
bool restarted[REPLICAS];	/* the member of these sets was an earlier process */
byte seen[REPLICAS];		/* the highest term that a replica knows */
byte acks[WRITES];		/* the replicas that have confirmed a logged write */
#endif

#define bit(w) (1 << (w))
#define other(w) (1 - (w))
#define pending(w) (phase[w] >= LOGGED && phase[w] <= ADMITTED)
#define holds(r) (holder == r && term == own[r] && mark == 0)

#ifdef REACH
/* Shows that the property is not vacuous: it is violated by two writes that do not
 * conflict, admitted in different terms, the second one in a term that began this way. */
#define INDEPENDENT
#define BY_EXPIRY 1
#define BY_TRANSFER 2
#define BY_RELEASE 3
#define BY_SYNC 4
byte how[TERMS + 1];		/* how each term began */
byte admittedIn[WRITES];	/* the term in which each write was admitted */
#define record(h) how[term] = h
#define violation (stored == 3 && admittedIn[0] < admittedIn[1] && how[admittedIn[1]] == REACH)
#else
#define record(h) skip
#define violation (stored == 3)
#endif

inline fail(w) {
#ifdef MIRROR
	acks[w] = 0;
#endif
	phase[w] = FAILED; timer[w] = 0; at[w] = 0; began[w] = 0; stale[w] = 0;
#ifdef DETAILED
	stamp[w] = 0;
#endif
}

/* stepDown makes a replica a follower. It keeps running the evaluations that it began. */
inline stepDown(r) {
	role[r] = FOLLOWER; own[r] = 0; valid[r] = 0; flight[r] = 0; got[r] = 0;
#ifdef DETAILED
	renewing[r] = 0; sent[r] = 0; listed[r] = 0; list[r] = 0
#else
	cache[r] = 0
#endif
}

/* crash ends the process of a replica, which starts again with nothing in memory. Answers
 * that it sent before can still arrive. */
inline crash(r) {
	stepDown(r);
	cache[r] = 0;
#ifdef MIRROR
	restarted[r] = 1; mirrors[r] = 0; seen[r] = 0;
#endif
	if
	:: at[0] == r && (phase[0] == EVALUATING || phase[0] == LOGGED) -> fail(0)
	:: else
	fi;
	if
	:: at[1] == r && (phase[1] == EVALUATING || phase[1] == LOGGED) -> fail(1)
	:: else
	fi
}

/* acquire takes the Lease: one update that fails if the Lease was changed meanwhile. */
inline acquire(r, keep) {
	term++; holder = r; mark = 0; leaseTimer = WAIT;
#ifdef MIRROR
	synced = 0; mirrors[r] = 0; seen[r] = term;
#endif
	role[r] = CATCHUP; own[r] = term; valid[r] = V + 1; got[r] = 0;
	if
	:: !keep -> flight[r] = 0
	:: else
	fi;
#ifndef DETAILED
	/* Logs of earlier terms are of no use any more. */
	forget(0); forget(1);
#if REPLICAS == 3
	forget(2)
#endif
#endif
}

inline forget(r) {
	if
	:: role[r] == FOLLOWER -> flight[r] = 0; got[r] = 0
	:: else
	fi
}

/* --- Replica: the election of one pod ------------------------------------------- */

proctype Replica(byte me) {
	do
	/* Crash handover: nothing changed the Lease for LEASE. It does not matter whose
	 * name it has: this one's from an earlier life, or none after an edit. */
#ifdef MIRROR
	/* A replica that has the log does not wait. */
	:: d_step { (role[me] == FOLLOWER && term < TERMS && (synced & bit(me))
#ifndef KEEP_NAME	/* broken: a restarted process, without the log, counts as synced */
		&& !restarted[me]
#endif
		) -> acquire(me, true); record(BY_SYNC);
		printf("replica %d, which is synced, acquires the Lease, in term %d\n", me, term) }
#endif
#ifndef NO_BOUNDS
	:: d_step { (role[me] == FOLLOWER && term < TERMS
#ifndef NO_WAIT		/* broken: does not wait for the lease of another replica */
		&& (leaseTimer == 0
#ifdef EMPTY_IS_FREE	/* broken: a Lease without a holder is free, as in client-go */
		|| holder == NONE
#endif
		)
#endif
		) -> acquire(me, false); record(BY_EXPIRY);
		printf("replica %d acquires the Lease without a handover, in term %d\n", me, term);
#ifdef EARLY_LIST
		role[me] = LEADER;
#endif
		}
#endif
#ifdef EARLY_LIST	/* broken: the list was taken before the lease had run out */
	:: d_step { role[me] == FOLLOWER && cache[me] != stored -> cache[me] = stored }
#endif
#ifdef SAME_NAME	/* broken: a restarted process continues the lease of its name */
	:: d_step { role[me] == FOLLOWER && holder == me && mark == 0 ->
		printf("replica %d continues the lease of its name\n", me);
		role[me] = CATCHUP; own[me] = term; valid[me] = V + 1; leaseTimer = WAIT }
#endif
	/* Graceful handover to a replica that has the log of exactly this term. */
	:: d_step { (role[me] == FOLLOWER && term < TERMS && mark == TRANSFERRED
#ifndef ANY_SUCCESSOR	/* broken: a replica without the log does not wait either */
		&& holder == me && got[me] == term
#endif
		) -> acquire(me, true); record(BY_TRANSFER);
		printf("replica %d acquires the transferred Lease, in term %d\n", me, term);
#ifdef GRACEFUL_NO_LIST	/* broken: takes the log to be all that the cache can lack */
		role[me] = LEADER;
#endif
		}
	/* Graceful handover with nothing in flight. */
	:: d_step { role[me] == FOLLOWER && term < TERMS && mark == RELEASED ->
		acquire(me, false); record(BY_RELEASE);
		printf("replica %d acquires the released Lease, in term %d\n", me, term);
#ifdef GRACEFUL_NO_LIST
		role[me] = LEADER;
#endif
		}

#ifndef DETAILED
	/* A renewal. One that is stored later than it was sent, or whose answer is late or
	 * lost, leaves the leader less time before another replica can take the Lease. */
	:: d_step { role[me] != FOLLOWER && holds(me) && valid[me] <= V ->
		printf("replica %d renews the Lease\n", me);
		leaseTimer = WAIT; valid[me] = V + 1 }
#else
	/* A renewal is sent, stored, answered. Each of the three can be late or lost. */
	:: d_step { role[me] != FOLLOWER && renewing[me] == 0 && valid[me] <= V ->
		printf("replica %d sends a renewal\n", me);
		renewing[me] = 1; sent[me] = V + 1 }
	:: d_step { renewing[me] == 1 && holds(me) ->
		printf("the API server stores the renewal of replica %d\n", me);
		leaseTimer = WAIT; renewing[me] = 2 }
	:: d_step { renewing[me] == 2 ->
		printf("replica %d gets the response to its renewal\n", me);
#ifdef LATE_CLOCK	/* broken: the lease is valid from the answer on, as in client-go */
		valid[me] = V + 1;
#else
		if
		:: sent[me] > valid[me] -> valid[me] = sent[me]
		:: else
		fi;
#endif
		renewing[me] = 0; sent[me] = 0 }
	:: d_step { renewing[me] != 0 ->
		printf("the renewal of replica %d fails\n", me);
		renewing[me] = 0; sent[me] = 0 }
#endif
	/* It reads that it does not hold the Lease any more. */
	:: d_step { role[me] != FOLLOWER && !holds(me) ->
		printf("replica %d reads that it does not hold the Lease\n", me);
		stepDown(me) }

	/* A new leader takes a consistent list after it acquired the Lease, and evaluates
	 * once its cache has everything that is in the list. */
#if defined(NO_LIST)	/* broken: starts with the cache as it is */
	:: d_step { role[me] == CATCHUP ->
		printf("replica %d starts to evaluate without a list\n", me);
		role[me] = LEADER }
#elif defined(DETAILED)
	:: d_step { role[me] == CATCHUP && !listed[me] ->
		printf("replica %d takes a consistent list\n", me);
		listed[me] = 1; list[me] = stored }
	:: d_step { role[me] == CATCHUP && listed[me] && (list[me] & ~cache[me]) == 0 ->
		printf("the cache of replica %d has caught up with the list; it starts to evaluate\n", me);
		role[me] = LEADER; listed[me] = 0; list[me] = 0 }
#else
	/* A cache that takes longer, and has more by then, lets it start later. */
	:: d_step { role[me] == CATCHUP ->
		printf("replica %d has a consistent list in its cache, and starts to evaluate\n", me);
		role[me] = LEADER; cache[me] = stored; flight[me] = flight[me] & ~stored }
#endif

	/* A leader that receives SIGTERM does not evaluate in this term any more. It can
	 * still be catching up. */
	:: d_step { role[me] == LEADER || role[me] == CATCHUP ->
		printf("replica %d drains\n", me);
#ifdef DETAILED
		listed[me] = 0; list[me] = 0;
#endif
		role[me] = DRAIN }
#ifdef RESUME		/* broken: evaluates again after it handed its log over */
	:: d_step { role[me] == DRAIN ->
		printf("replica %d evaluates again\n", me);
		role[me] = LEADER }
#endif
	/* It releases the Lease once nothing is in flight. The response may be lost. */
	:: d_step { (role[me] == DRAIN && holds(me)
#ifndef NO_DRAIN_WAIT	/* broken: releases the Lease with writes in flight */
		&& flight[me] == 0
#endif
		) -> holder = NONE; mark = RELEASED; leaseTimer = WAIT;
		printf("replica %d releases the Lease\n", me) }

	:: d_step { (role[me] != FOLLOWER || got[me] != 0 || cache[me] != 0
#ifdef MIRROR
		|| !restarted[me]
#endif
		) ->
		printf("replica %d crashes, and starts again\n", me);
		crash(me) }
	od
}

/* --- Handover: a leader that drains, and one other replica ----------------------- */

proctype Handover(byte from; byte to) {
	do
	/* The log goes to the successor, which confirms that it has it. */
	:: d_step { (role[from] == DRAIN && role[to] == FOLLOWER && got[to] != own[from]
#ifndef DETAILED	/* The log of an earlier term is of no use. */
		&& holds(from)
#endif
		) ->
		got[to] = own[from];
		printf("replica %d hands its log over to replica %d\n", from, to);
#ifdef NO_HANDOVER_LOG	/* broken: the log is not handed over */
		flight[to] = 0
#else
		flight[to] = flight[from]
#endif
		}
	/* Then the Lease goes to it by name. The response may be lost. */
	:: d_step { role[from] == DRAIN && holds(from) && got[to] == own[from] ->
		printf("replica %d transfers the Lease to replica %d\n", from, to);
		holder = to; mark = TRANSFERRED; leaseTimer = WAIT }
	od
}

#ifdef MIRROR
/* --- Mirror: a leader, and one other replica that keeps a copy of its log --------- */

proctype Mirror(byte from; byte to) {
	do
	/* The leader sends its whole log, and adds the replica to the set in the Lease. */
	:: d_step { role[from] == LEADER && holds(from) && role[to] == FOLLOWER && !(synced & bit(to)) && !(mirrors[from] & bit(to)) ->
		printf("replica %d has the log of replica %d, and is synced\n", to, from);
		flight[to] = flight[from]; restarted[to] = 0; seen[to] = own[from];
		synced = synced | bit(to); mirrors[from] = mirrors[from] | bit(to) }
	/* It removes one that does not answer, before it goes on without it. */
	:: d_step { (role[from] == LEADER && (mirrors[from] & bit(to))
#ifndef SILENT_REMOVE	/* broken: goes on without it, and the Lease does not say so */
		&& holds(from)
#endif
		) ->
		printf("replica %d removes replica %d from the set\n", from, to);
#ifndef SILENT_REMOVE
		synced = synced & ~bit(to);
#endif
		mirrors[from] = mirrors[from] & ~bit(to) }
	/* A logged write is sent. A replica that knows a later term refuses it. */
	:: d_step { (phase[0] == LOGGED && at[0] == from && (mirrors[from] & bit(to)) && !restarted[to] && !(acks[0] & bit(to)) && role[to] == FOLLOWER
#ifndef ANY_ACK		/* broken: confirms writes of an earlier term */
		&& seen[to] == began[0]
#endif
		) ->
		printf("replica %d has write 0\n", to);
		acks[0] = acks[0] | bit(to); flight[to] = flight[to] | bit(0) }
	:: d_step { (phase[1] == LOGGED && at[1] == from && (mirrors[from] & bit(to)) && !restarted[to] && !(acks[1] & bit(to)) && role[to] == FOLLOWER
#ifndef ANY_ACK
		&& seen[to] == began[1]
#endif
		) ->
		printf("replica %d has write 1\n", to);
		acks[1] = acks[1] | bit(to); flight[to] = flight[to] | bit(1) }
	od
}
#endif

/* --- Watch: the cache and the log of one replica, and one write ------------------- */

/* Events can be late for any time, which is also how a watch is cut and relisted: a list
 * delivers what is stored, and the cache never goes back to an older state. */
proctype Watch(byte me; byte w) {
	do
	:: d_step {
#ifndef DETAILED	/* No evaluation reads the cache of a follower: events can be late. */
		role[me] >= LEADER &&
#endif
		(stored & bit(w)) && !(cache[me] & bit(w)) ->
		printf("replica %d observes write %d\n", me, w);
		cache[me] = cache[me] | bit(w); flight[me] = flight[me] & ~bit(w) }
#ifdef CACHE_BACK	/* broken: a relist returns an older state than was observed */
	:: d_step { cache[me] & bit(w) ->
		printf("the cache of replica %d loses write %d\n", me, w);
		cache[me] = cache[me] & ~bit(w) }
#endif
	/* An entry expires once the write cannot be stored any more, and the cache has
	 * everything that was stored until then, but not this write. */
	:: d_step { ((flight[me] & bit(w))
#ifndef SHORT_EXPIRY	/* broken: expires while the write can still be stored */
		&& !pending(w)
#endif
#ifndef BLIND_EXPIRY	/* broken: expires by time alone, however late the watch is */
		&& phase[w] != STORED
#endif
		) -> flight[me] = flight[me] & ~bit(w);
		printf("write %d expires in the log of replica %d\n", w, me) }
	od
}

/* --- Evaluation: one replica handles the review of one write ---------------------- */

proctype Evaluation(byte me; byte w) {
	do
	/* The review arrives, from the API server or forwarded by another replica. A forward
	 * carries the term that the sender believes in. It is refused if the replica does
	 * not lead in that term: then it is sent again, or fails. */
	:: d_step { (phase[w] == CALLED
#ifndef FOLLOWER_EVALUATES	/* broken: a replica without the Lease evaluates alone */
		&& role[me] == LEADER && valid[me] > 0
#ifdef DETAILED		/* Otherwise a refused forward is one that is still on its way. */
#if !defined(OLD_FORWARD) && !defined(OLD_TERM)	/* not broken: the forward alone is old */
		&& stamp[w] == own[me]
#endif
#endif
#endif
		) ->
#ifndef INDEPENDENT
		if
		:: ((cache[me] | flight[me]) & bit(other(w))) ->
			printf("replica %d denies write %d\n", me, w);
			fail(w)
		:: else ->
#endif
			printf("replica %d begins to evaluate write %d\n", me, w);
			phase[w] = EVALUATING; at[w] = me; began[w] = own[me];
#ifdef DETAILED
			stamp[w] = 0
#endif
#ifndef INDEPENDENT
		fi
#endif
		}
	/* The evaluation ends. Under the lock of the log: does the replica still lead in
	 * the term in which it began, and with the same log? Then the write is logged. */
	:: d_step { phase[w] == EVALUATING && at[w] == me ->
		if
#if !defined(NO_RECHECK) && !defined(FOLLOWER_EVALUATES) /* broken: no check */
		:: (role[me] != LEADER
#ifndef OLD_TERM	/* broken: an evaluation of one term ends in another */
			|| began[w] != own[me]
#endif
			) ->
			printf("replica %d refuses to log write %d\n", me, w);
			fail(w)
#endif
		:: else ->
			if
			:: stale[w] ->
				printf("replica %d evaluates write %d again\n", me, w);
				phase[w] = CALLED; at[w] = 0; began[w] = 0; stale[w] = 0;
			:: else ->
				printf("replica %d logs write %d\n", me, w);
				phase[w] = LOGGED; flight[me] = flight[me] | bit(w);
				if
				:: phase[other(w)] == EVALUATING && at[other(w)] == me -> stale[other(w)] = 1
				:: else
				fi
			fi
		fi }
	/* The answer, if the lease is still valid. A leader that drains answers what it
	 * logged before, since that is in the log that it hands over. NO_ANSWER_CHECK leaves
	 * this check out, and is not broken: T is part of LEASE. */
	:: d_step { (phase[w] == LOGGED && at[w] == me
#if defined(MIRROR) && !defined(NO_ACK)	/* NO_ACK is broken: answers before the others have it */
		&& (mirrors[me] & ~acks[w]) == 0
#endif
		) ->
		if
#if !defined(NO_RECHECK) && !defined(NO_ANSWER_CHECK) && !defined(FOLLOWER_EVALUATES)
		:: (role[me] < LEADER
#ifndef OLD_TERM
			|| began[w] != own[me]
#endif
			|| valid[me] == 0
			) ->
			printf("replica %d does not answer write %d\n", me, w);
			fail(w)
#endif
		:: else ->
#ifdef REACH
			admittedIn[w] = began[w];
#endif
			printf("replica %d answers: write %d is allowed\n", me, w);
#ifdef MIRROR
			acks[w] = 0;
#endif
			phase[w] = ANSWERED; at[w] = 0; began[w] = 0
		fi }
	od
}

/* --- Request: one write of a client, in the API server ---------------------------- */

proctype Request(byte w) {
	do
	/* The first write is requested first: they are alike. */
	:: d_step { phase[w] <= FAILED && phase[0] >= w ->
		printf("a client sends write %d\n", w);
		phase[w] = CALLED; timer[w] = T + 1 }
#ifdef DETAILED
	/* It is forwarded, or forwarded again: in this term or in an earlier one. */
	:: d_step { phase[w] == CALLED && stamp[w] != term -> stamp[w] = term }
	:: d_step { phase[w] == CALLED && stamp[w] != 1 -> stamp[w] = 1 }
	:: d_step { phase[w] == CALLED && stamp[w] != 2 && term > 2 -> stamp[w] = 2 }
#endif
	:: d_step { phase[w] == ANSWERED ->
		printf("the API server gets the answer for write %d\n", w);
		phase[w] = ADMITTED; timer[w] = STORE + 1 }
	:: d_step { phase[w] == ADMITTED ->
		printf("the API server stores write %d\n", w);
		phase[w] = STORED; timer[w] = 0; stored = stored | bit(w);
		assert(!violation) }
	/* The answer is lost, a connection is cut, another webhook denies the write. */
	:: d_step { phase[w] >= CALLED && phase[w] <= ADMITTED ->
		printf("write %d fails\n", w);
		fail(w) }
	od
}

/* --- Clock: a tick passes everywhere ---------------------------------------------- */

inline countDown(t) {
	if
	:: t > 0 -> t--
	:: else
	fi
}

/* tickWrite ends a request when the API server gives up. */
inline tickWrite(w) {
#ifdef NO_BOUNDS	/* with MIRROR: the API server takes any time */
	skip
#else
	if
#ifdef NO_TIMEOUT	/* broken: the API server accepts an answer however late it is */
	:: phase[w] < ADMITTED
#endif
	:: timer[w] > 1 -> timer[w]--
	:: timer[w] == 1 -> fail(w)
	:: else
	fi
#endif
}

proctype Clock() {
	do
	:: d_step {
		printf("a tick passes\n");
		countDown(leaseTimer);
		countDown(valid[0]); countDown(valid[1]);
#if REPLICAS == 3
		countDown(valid[2]);
#endif
#ifdef DETAILED
		countDown(sent[0]); countDown(sent[1]);
#endif
		tickWrite(0); tickWrite(1) }
	od
}

/* --- Administrator: edits or deletes the Lease ------------------------------------ */

proctype Administrator() {
	do
	:: d_step { holder != NONE || mark != 0 ->
		printf("an administrator deletes the Lease\n");
		holder = NONE; mark = 0; leaseTimer = WAIT }
	:: d_step { holder != 0 ->
		printf("an administrator sets the holder of the Lease to replica 0\n");
		holder = 0; leaseTimer = WAIT }
	:: d_step { holder != 1 ->
		printf("an administrator sets the holder of the Lease to replica 1\n");
		holder = 1; leaseTimer = WAIT }
	od
}

init {
	atomic {
	/* Replica 0 leads in term 1. */
	role[0] = LEADER; own[0] = 1; valid[0] = V + 1;
	run Replica(0); run Replica(1);
	run Handover(0, 1); run Handover(1, 0);
	run Watch(0, 0); run Watch(0, 1); run Watch(1, 0); run Watch(1, 1);
	run Evaluation(0, 0); run Evaluation(0, 1); run Evaluation(1, 0); run Evaluation(1, 1);
#ifdef MIRROR
	restarted[0] = 1; restarted[1] = 1;
	run Mirror(0, 1); run Mirror(1, 0);
#if REPLICAS == 3
	restarted[2] = 1;
	run Mirror(0, 2); run Mirror(2, 0); run Mirror(1, 2); run Mirror(2, 1);
#endif
#endif
#if REPLICAS == 3
	run Replica(2);
	run Handover(0, 2); run Handover(2, 0); run Handover(1, 2); run Handover(2, 1);
	run Watch(2, 0); run Watch(2, 1);
	run Evaluation(2, 0); run Evaluation(2, 1);
#endif
	run Request(0); run Request(1);
	run Clock();
#ifdef EDITS
	run Administrator()
#endif
	}
}
