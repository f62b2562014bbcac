// Written by scripts/messages.mjs from the protos in ../../proto. Do not edit.
// Times are dates, spans are milliseconds, 64-bit counts are numbers, values of enums have no prefix, and fields of an answer
// that hold nothing have their type's default; a field with a question mark may be absent.

/** Why one item of a batch failed: an `EmendError`. */
export interface ItemError extends Error {
  /** The gRPC code. */
  readonly code: string
  /** A stable reason in UPPER_SNAKE_CASE. */
  readonly reason: string | undefined
  /** Every field that is wrong. */
  readonly violations: readonly { field: string; description: string }[]
}

/** Which suggestion to accept. */
export interface AcceptSuggestionRequest {
  /** The search application. Required. */
  namespace: string
  /** The user whose profile it is for: NOT_FOUND if it is another's. Required. */
  userId: string
  /** UUID. Required. */
  candidateId: string
  /** As last seen. Empty: act on the current version. */
  etag: string
}

/** What was accepted. */
export interface AcceptSuggestionResponse {
  /** The suggestion, as it is now. */
  suggestion?: ProfileSuggestion
  /** The profile with it. */
  profile?: Profile
  /** The revision that was written. */
  revision: number
}

/** Opens a candidate for review. */
export interface AcquireReviewLeaseRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** The reviewer, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** Who has the candidate open. */
export interface AcquireReviewLeaseResponse {
  /** One's own lease, or that of whoever has it. */
  lease?: ReviewLease
  /** Whether it is one's own. */
  acquired: boolean
}

/** Something that a user did. Personal: erased with the user. */
export interface Activity {
  /**
   * What tells of it: CLAUDE_CODE, LEARNING, GITHUB or an application's own name. 1 to 64 characters of
   * [A-Z0-9_], beginning with a letter.
   */
  sourceType: string
  /** Its id there, 1 to 256 characters, compared byte for byte. */
  sourceId: string
  /** When it was done. Default: when it is recorded. */
  occurredAt?: Date
  /** What was done, in words; for generators that read. At most 4,000 characters. */
  summary: string
  /** Technologies that were used, at most 50 of 1 to 512 characters. */
  technologies: string[]
  /** Fields that it belongs to, at most 50 of 1 to 512 characters. */
  topics: string[]
  /** What the user said to want to learn, at most 50 of 1 to 512 characters. */
  goals: string[]
  /** The years of experience that it shows, 0 to 80; absent if it shows none. */
  experienceYears?: number
}

/** Who made a change. */
export interface Actor {
  /**
   * The authenticated client that made the call; "anonymous" if authentication is off, "system" for background
   * work.
   */
  caller: string
  /**
   * The person or agent on whose behalf the caller acted, as the caller asserts it: in the log, of what
   * corrections decided, their reporter until it is erased. May be empty.
   */
  onBehalfOf: string
}

/** A trust file. */
export interface ApplyTrustFileRequest {
  /**
   * The file's text, at most 16 MiB and 200,000 domains: `namespaces` (a list), `version` (1 or more), `domains`
   * (a list of `pattern` and `level`), `blocked` (patterns), `dangerousPatterns` (names for backends to report
   * with claims; all that they report count, also others). A pattern in `domains` may be a public suffix.
   */
  content: string
  /** How it is written. */
  format: TrustFileFormat
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** What applying a trust file did, for each of its namespaces. */
export interface ApplyTrustFileResponse {
  /** In the file's order. */
  namespaces: TrustFileApplied[]
}

/** Applies a candidate. */
export interface ApproveCandidateRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** As last seen. Empty: act on the current version. */
  etag: string
  /** Why. At most 2,000 characters. */
  reason: string
  /**
   * Apply this value instead. It becomes a separate candidate with editedFrom set. `display` and the kind's own
   * fields may differ from the original; the kind may not.
   */
  editedValue?: ResourceValue
  /** The reviewer, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
  /**
   * Approve it although ratings that it was generated from have been redacted since, whose words may still be in
   * its text. Default (false): such a proposal is FAILED_PRECONDITION with the reason RATINGS_REDACTED, also with
   * an edited value.
   */
  acceptRedacted: boolean
}

/** The applied candidate. */
export interface ApproveCandidateResponse {
  /**
   * The candidate that was approved: the new one if the value was edited. APPLIED, unless it needs a second
   * reviewer.
   */
  candidate?: Candidate
  /** The revision that was written; 0 if the value was already applied, or needs a second reviewer. */
  revision: number
}

/** Asks for a second opinion. */
export interface AskSecondOpinionRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** What is asked. Required, 1 to 2,000 characters. */
  comment: string
  /**
   * Who is asked, by the name of a caller or on whose behalf one acts. At most 128 characters. Default: anybody
   * else.
   */
  asked: string
  /** The reviewer, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The question is kept. */
export interface AskSecondOpinionResponse {
  /** As it is kept. */
  comment?: ReviewComment
}

/** A choice that the backend would offer by itself. */
export interface BackendCandidate {
  /** A verb or entity id, 1 to 256 characters. */
  value: string
  /** 0.0 to 1.0. */
  score: number
}

/** Approves several candidates. */
export interface BatchApproveCandidatesRequest {
  /** 1 to 100. */
  requests: ApproveCandidateRequest[]
}

/** One result per item, in request order. */
export interface BatchApproveCandidatesResponse {
  /** As many results as requests. */
  results: ReviewResult[]
}

/** Rejects several candidates. */
export interface BatchRejectCandidatesRequest {
  /** 1 to 100. */
  requests: RejectCandidateRequest[]
}

/** One result per item, in request order. */
export interface BatchRejectCandidatesResponse {
  /** As many results as requests. */
  results: ReviewResult[]
}

/** Up to 100 corrections to store. */
export interface BatchSubmitFeedbackRequest {
  /** 1 to 100 items. Each item's `wait` is ignored; the batch's own `wait` applies. */
  requests: SubmitFeedbackRequest[]
  /** When to return. Default: RECORDED. */
  wait: Wait
}

/** One result per item, in request order. */
export interface BatchSubmitFeedbackResponse {
  /** As many results as requests. */
  results: BatchSubmitFeedbackResult[]
}

/** The result for one item. */
export interface BatchSubmitFeedbackResult {
  /** OK, or why this item was not stored. Field names in it are relative to the item. */
  status?: ItemError
  /** As stored; absent if the status is not OK. */
  feedback?: Feedback
  /**
   * `feedback` is stored in full but returned in part, because all results together would exceed the 4 MiB that
   * gRPC clients accept by default. First context and reason are left out; if that is not enough, whatWasLearned
   * and message of the outcome and `present`, then the correction. GetFeedback returns everything.
   */
  abridged: boolean
}

/** A pattern whose sources are not shown. */
export interface BlockedDomain {
  /** The pattern. */
  domain: string
  /** The layer that blocks it: human, file or verified. */
  layer: string
  /** Since when. */
  blockedAt?: Date
  /** Why: what a person said, or, in words, what the system found. */
  reason: string
  /** Claims that are REJECTED and have a SUPPORTS edge from it, at most 20; only where the system blocked it. */
  contradictingClaims: string[]
  /** How far it would be trusted if nothing blocked it. */
  originalLevel: TrustLevel
  /** Whether a correction brings it back. */
  canRestore: boolean
  /** The form of correction that does: domainUnblock. */
  restoreVia: string
  /** What blocked it: the feedback, else the claim with the dangerous pattern, else the candidate. */
  causeId: string
}

/** One proposed value in a contest. */
export interface Candidate {
  /** UUID. */
  candidateId: string
  /** The contest: the key of the resource it would become. */
  key?: ResourceKey
  /** The proposed value. */
  value?: ResourceValue
  /** Its current status. */
  status: CandidateStatus
  /** The reason for the status in UPPER_SNAKE_CASE, as in Outcome.reason; may be empty. */
  statusReason: string
  /** Where it came from. */
  origin: CandidateOrigin
  /** The candidate that a person edited to make this one; may be empty. */
  editedFrom: string
  /** The risk level when it was last evaluated. */
  riskLevel: RiskLevel
  /** How often it was proposed, not counting retracted feedback. */
  occurrenceCount: number
  /** How many distinct voters support it. */
  reporterCount: number
  /** Its supporters, counted as the policy says, minus those of its strongest rival. May be negative. */
  netConfirmations: number
  /** The threshold when it was last evaluated. */
  threshold: number
  /** Net confirmations still missing; 0 if none. */
  confirmationsNeeded: number
  /** The version of the policy that last evaluated it. */
  policyVersion: number
  /** The contest is pinned: a person set the applied value, and votes do not replace it. */
  contestPinned: boolean
  /**
   * Who changed its status last: of a superseded one, whoever put another in its place. Who decided before is in
   * its history.
   */
  decidedBy?: Actor
  /** The reason given for that change; may be empty. */
  decisionReason: string
  /** The last revision that applied it; 0 if none did. */
  appliedRevision: number
  /** When it was first proposed. */
  createdAt?: Date
  /** When it last changed. */
  updatedAt?: Date
  /** Opaque. Send it back to act only on the version you saw. */
  etag: string
  /** What is kept of it as a ruling; absent where the kind is decided by votes. */
  ruling?: Ruling
  /** What is kept of it as a proposal under review; absent where the kind is decided in another way. */
  proposal?: Proposal
  /** Who has it open for review; absent if nobody has. Filled in by ListCandidates and GetCandidate. */
  lease?: ReviewLease
  /**
   * Its first approval, where the policy needs two; absent if it has none that stands. Filled in by
   * ListCandidates and GetCandidate.
   */
  firstApproval?: FirstApproval
  /**
   * Whoever was asked for a second opinion last and has not answered yet; absent if nobody was. Filled in by
   * ListCandidates and GetCandidate.
   */
  secondOpinion?: ReviewComment
}

/** A claim as corrected. */
export interface Claim {
  /** The claim. */
  claimId: string
  /** The task that it belongs to; may be empty. */
  taskId: string
  /** What it says. */
  text: string
  /** The page that it was found on; may be empty. */
  pageId: string
  /** The host of that page; may be empty. */
  domain: string
  /** How far that host is trusted; UNSPECIFIED without a page. */
  level: TrustLevel
  /** Whether the backend adopted it. */
  adoption: ClaimAdoption
  /** Names of dangerous patterns found with it. */
  dangerousPatterns: string[]
  /** Where it stands. */
  status: ClaimStatus
  /**
   * Whether a person rejected it (REJECTED) or restored it (RESTORED), and nothing newer is in force; else
   * UNSPECIFIED.
   */
  decision: ClaimDecision
  /** What its evidence says. */
  confidence?: Confidence
  /** When it was first and last upserted. */
  createdAt?: Date
  /** When it was last upserted. */
  updatedAt?: Date
  /** Its confidence where each edge weighs (COUNT_ALL), whatever the policy. Set by bothReadings. */
  countAll?: Confidence
  /**
   * Its confidence where only the strongest edge of each relation of each source weighs (ONE_PER_SOURCE),
   * whatever the policy. Set by bothReadings.
   */
  onePerSource?: Confidence
}

/**
 * A claim is hidden from results; it is kept. Decides CLAIM_STATE, at once if the caller is entitled, as
 * DomainBlock does. The request's reason is required and its scope GLOBAL. While the claim is not known, the
 * outcome is PENDING, reason TARGET_NOT_FOUND, and it takes effect when the claim is upserted.
 */
export interface ClaimReject {
  /** The claim, by the application's own id, compared byte for byte. 1 to 256 characters. */
  claimId: string
  /** Why, as a code: 1 to 64 characters of [A-Z0-9_], beginning with a letter, for example SPAM. Optional. */
  reasonCode: string
  /** As in DomainBlock. */
  taskId: string
}

/** A claim is shown, whatever the backend reports against it. Decides CLAIM_STATE, as ClaimReject does. */
export interface ClaimRestore {
  /** As in ClaimReject. */
  claimId: string
  /** As in DomainBlock. */
  taskId: string
}

/** What was decided about a claim. */
export interface ClaimStateValue {
  /** The decision. Required. CLEARED is only proposed, never a resource. */
  decision: ClaimDecision
  /**
   * Why it was rejected: 1 to 64 characters of [A-Z0-9_], beginning with a letter, for example SPAM. Optional
   * with REJECTED, else empty.
   */
  reasonCode: string
}

/** Searches, and how many of them led to a click. */
export interface ClickThrough {
  /** The variant of an experiment that the user saw. Empty: not known, or whatever variant. */
  variant: string
  /** Searches. */
  searchCount: number
  /** Of these, those with a click on a result at least. */
  clickedCount: number
  /** clickedCount / searchCount, 0 to 1. Absent without searches. */
  clickThrough?: number
  /** The lower end of its 95 % confidence interval (Wilson). Absent without searches. */
  clickThroughLow?: number
  /** Its upper end. Absent without searches. */
  clickThroughHigh?: number
  /** Of searchCount those that found nothing: whose hitCount is 0. */
  zeroHitCount: number
  /** Of searchCount those of which it is not known how many results they found. */
  unknownHitCount: number
  /** zeroHitCount / (searchCount − unknownHitCount), 0 to 1. Absent without searches whose hitCount is known. */
  zeroHitShare?: number
}

/** Comments on a candidate. */
export interface CommentOnCandidateRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** Required, 1 to 2,000 characters. */
  comment: string
  /** The reviewer, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The comment is kept. */
export interface CommentOnCandidateResponse {
  /** As it is kept. */
  comment?: ReviewComment
}

/**
 * The confidence of a claim: a Beta distribution with prior Beta(1, 1), from the weights of its edges. Trust in
 * sources has no part in it.
 */
export interface Confidence {
  /** 1 + the weights of what supports it. 2 decimals. */
  alpha: number
  /** 1 + the weights of what refutes it. 2 decimals. */
  beta: number
  /** alpha / (alpha + beta). 3 decimals. */
  confidence: number
  /** The standard deviation. 3 decimals. */
  uncertainty: number
  /** The weaker side's share of the evidence, 0 to 0.5; 0 without evidence. 3 decimals. */
  controversy: number
  /** How many edges support it. */
  supportingCount: number
  /** How many edges refute it. */
  refutingCount: number
  /** How many edges are neutral. */
  neutralCount: number
  /** How many edges there are. */
  evidenceCount: number
  /**
   * How many independent sources support it: works (pages that share a DOI, PMID or arXiv id, also by way of
   * others), else pages of hosts at ACADEMIC and above, else registrable domains.
   */
  independentSources: number
  /** What that comes to. */
  verdict: Verdict
}

/** From which score on a result is of a confidence. */
export interface ConfidenceThreshold {
  /** The confidence, for example high: 1 to 64 characters, without white space, commas, = and +. */
  name: string
  /** The score, 0.0 to 1.0. */
  minScore: number
}

/**
 * What a reporter says is wrong and, where known, what is right. Verbs, entity ids and forbidden choices are
 * trimmed and brought into Normalization Form C; one with an invisible character (U+200B, U+202E …) is
 * INVALID_ARGUMENT. From phrases, terms and rated texts invisible characters are removed, but those that a script
 * or an emoji needs; a phrase becomes one line.
 */
export interface Correction {
  /** The wrong verb was chosen for what the user said. */
  verb?: VerbCorrection
  /** A phrase means this verb. */
  phraseMapping?: PhraseMapping
  /** The wrong entity was chosen for what the user said. */
  entity?: EntityCorrection
  /** A choice must never be offered for a phrase. */
  prohibition?: Prohibition
  /** Other terms stand for this one. */
  term?: TermCorrection
  /** The sources of a domain must not be shown. */
  domainBlock?: DomainBlock
  /** The sources of a domain are shown again. */
  domainUnblock?: DomainUnblock
  /** What people decided about a domain no longer applies. */
  domainClearOverride?: DomainClearOverride
  /** The sources of a domain are trusted this far. */
  domainSetTrust?: DomainSetTrust
  /** What an AI made is good, or is not. */
  rating?: Rating
  /** A claim is hidden from results. */
  claimReject?: ClaimReject
  /** A claim is shown, whatever speaks against it. */
  claimRestore?: ClaimRestore
  /** An edge has this label. */
  edgeCorrect?: EdgeCorrect
  /** What a search found is good, or is not. */
  searchRating?: SearchRating
  /** Queries of one type are searched so. */
  tuning?: TuningCorrection
}

/** What the model said of an edge, and what a person says is right. */
export interface CorrectionSample {
  /** The feedback that corrected it; the edge's id where an operator did. */
  sampleId: string
  /** The edge. */
  edgeId: string
  /** The task; may be empty. */
  taskId: string
  /** The text of the edge's source; of a page, its title. */
  premise: string
  /** The text of the edge's target. */
  hypothesis: string
  /** What the model said. */
  predictedLabel: EdgeRelation
  /** How sure it was; not set if it did not say. */
  predictedConfidence?: number
  /** What is right. */
  correctLabel: EdgeRelation
  /** Why; empty if not given or erased. */
  reason: string
  /** Who corrected it; empty if not given or erased. */
  reporter: string
  /** When the correction was accepted. */
  correctedAt?: Date
  /** Whether it belongs to the test part of the split. */
  isTest: boolean
}

/**
 * How far a subscriber has applied, in which epoch and for which filter. Opaque, except that revisions of one
 * epoch may be compared.
 */
export interface Cursor {
  /** The epoch of the log: a UUID, generated when the log is created or restored. */
  epoch: string
  /** Every revision up to and including this one has been applied. */
  revision: number
  /** Hash of the filter, after authorization. Decimal digits. */
  filterHash: string
}

/** An event that learning-svc refused permanently. */
export interface DeadLetter {
  /** UUID of the event. */
  eventId: string
  /** UUID of the feedback; empty for the erasure of a reporter, which concerns no single one. */
  feedbackId: string
  /** The search application. */
  namespace: string
  /** Number of delivery attempts. */
  attempts: number
  /** The google.rpc.Code of the refusal. */
  code: number
  /** The message of the refusal. */
  error: string
  /** When it became a dead letter, by the database's clock. */
  deadAt?: Date
}

/** A histogram of delays. */
export interface DelayHistogram {
  /** Upper bounds in milliseconds, increasing; one more bucket above the last is implied. At most 32. */
  boundsMs: number[]
  /** One count per bucket: one more than there are bounds. */
  counts: number[]
  /** Sum of all delays in milliseconds. */
  sumMs: number
}

/** What to delete: 1 to 1,000 ids together. */
export interface DeleteEvidenceRequest {
  /** The search application. Required. */
  namespace: string
  /** Pages, with their fragments and all edges of these. */
  pageIds: string[]
  /** Fragments, with their edges. */
  fragmentIds: string[]
  /** Claims, with the edges from and to them. */
  claimIds: string[]
  /** Edges. */
  edgeIds: string[]
  /** Why. At most 2,000 characters; kept with the events. */
  reason: string
  /** The person, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** What was deleted by this call. */
export interface DeleteEvidenceResponse {
  /** Pages. */
  pages: number
  /** Fragments. */
  fragments: number
  /** Claims. */
  claims: number
  /** Edges. */
  edges: number
}

/** Deletes a value. */
export interface DeleteResourceRequest {
  /** The resource's key. Required. NOT_FOUND if there is no such resource. */
  key?: ResourceKey
  /** Act only if the resource still has this etag (ABORTED otherwise). Empty: unconditional. */
  etag: string
  /** Why. At most 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The value was deleted. */
export interface DeleteResourceResponse {
  /** The revision that was written. */
  revision: number
}

/**
 * The sources of a domain must not be shown. Decides DOMAIN_RULE, at once if the caller is entitled (policy; by
 * default reviewers, everybody without authentication); otherwise it awaits review. The request's reason is
 * required and its scope GLOBAL, as for all decisions about domains. Of several decisions about one pattern the
 * newest one is in force.
 */
export interface DomainBlock {
  /**
   * A domain, which covers itself and all its subdomains, or *.example.org, which covers the subdomains only. At
   * most 512 characters as written; case, trailing dot and the spelling of internationalised names do not matter.
   * INVALID_ARGUMENT: URLs, ports, paths, addresses, other wildcards, and what is at or above a public suffix
   * (com, *.co.jp). One at a private suffix (github.io) always awaits review.
   */
  pattern: string
  /**
   * The research task in which it was said, by the application's own id, compared byte for byte. At most 256
   * characters. Optional.
   */
  taskId: string
}

/**
 * What people decided about a domain no longer applies, and the default does again. Decides DOMAIN_RULE, as
 * DomainBlock does. With nothing to clear the outcome is NO_EFFECT, reason NOTHING_TO_CLEAR; older decisions that
 * arrive later stay cleared.
 */
export interface DomainClearOverride {
  /** As in DomainBlock. */
  pattern: string
  /** As in DomainBlock. */
  taskId: string
}

/** A decision about a domain. */
export interface DomainRuleRecord {
  /** Its id: the candidate that it is. UUID. */
  ruleId: string
  /** The pattern. */
  pattern: string
  /** Its layer: human, file or verified. */
  layer: string
  /** What was decided. */
  rule?: DomainRuleValue
  /** Whether it is in force. */
  active: boolean
  /** Its status as a candidate. */
  status: CandidateStatus
  /** The reason for the status in UPPER_SNAKE_CASE; may be empty. */
  statusReason: string
  /** Why, as who decided said; empty if not given or erased. */
  reason: string
  /** Who decided. */
  actor?: Actor
  /** The feedback that it is; empty if an operator or the system decided. */
  feedbackId: string
  /** When it was decided. */
  createdAt?: Date
  /** The revision by which it came into force; 0: it never did. */
  appliedRevision: number
  /**
   * How far what the pattern covers is trusted now, by all rules in force: those of the layer human before file
   * before verified, and in a layer the most specific. It is not this rule's own level where another one comes
   * before it.
   */
  effectiveLevel: TrustLevel
  /** The layer of the rule that decides so: human, file or verified; empty if none does and the default applies. */
  effectiveLayer: string
}

/** What was decided about the sources that a pattern of domains covers. */
export interface DomainRuleValue {
  /** The decision. Required. CLEAR is only proposed, never a resource. */
  decision: DomainDecision
  /**
   * How far the sources are trusted: required with SET_TRUST, optional with UNBLOCK, else empty; never BLOCKED.
   * An UNBLOCK without a level gets the one that was given to the pattern before, unless it was cleared since;
   * where there is none, hosts have the level that the lower layers give when their blocks are ignored.
   */
  level: TrustLevel
  /** Why the system decided it: always given in the layer "verified", never in the others. */
  cause: DomainRuleCause
  /** The claim that is the cause, 1 to 512 characters; empty where no single claim is, and without a cause. */
  causeId: string
}

/** The sources of a domain are trusted this far. Decides DOMAIN_RULE, as DomainBlock does. */
export interface DomainSetTrust {
  /** As in DomainBlock. */
  pattern: string
  /** How far. Required; not BLOCKED. */
  level: TrustLevel
  /** As in DomainBlock. */
  taskId: string
}

/**
 * The sources of a domain are shown, whatever blocked this pattern or one with a shorter name. Decides
 * DOMAIN_RULE, as DomainBlock does.
 */
export interface DomainUnblock {
  /** As in DomainBlock. */
  pattern: string
  /** How far they are trusted. Default (0): as was decided about the pattern before. */
  level: TrustLevel
  /** As in DomainBlock. */
  taskId: string
}

/** An edge as corrected. */
export interface Edge {
  /** The edge. */
  edgeId: string
  /** What it is: as a person says, else as the model says, else as it was upserted. */
  relation: EdgeRelation
  /** How sure that is: 1.0 where a person corrected it, else the model's confidence; not set if there is none. */
  confidence?: number
  /** From where. */
  source?: NodeRef
  /** To where. */
  target?: NodeRef
  /** The host of the source; empty if the source is a claim without a page. */
  sourceDomain: string
  /** How far that host is trusted; UNSPECIFIED without one. */
  sourceLevel: TrustLevel
  /** The host of the target's source; may be empty. */
  targetDomain: string
  /** How far that host is trusted; UNSPECIFIED without one. */
  targetLevel: TrustLevel
  /** The task that it belongs to; may be empty. */
  taskId: string
  /** What the model says, or, without a label, the relation as upserted; UNSPECIFIED for CITES. */
  predictedLabel: EdgeRelation
  /** How sure the model is; not set if it did not say. */
  predictedConfidence?: number
  /** Whether a person reviewed it. */
  reviewed: boolean
  /** Whether that person disagreed with the model. */
  corrected: boolean
  /** When the review was accepted; not set if there was none. */
  reviewedAt?: Date
  /** Why, as the reviewer said; empty if not given or erased. */
  reviewReason: string
  /** The feedback that reviewed it; empty if an operator did. */
  feedbackId: string
}

/**
 * An edge between a fragment and a claim has this label: it is reviewed, and corrected where the model's label
 * differs. Decides EDGE_LABEL, as ClaimReject does, but the reason is optional.
 */
export interface EdgeCorrect {
  /** The edge, by the application's own id, compared byte for byte. 1 to 256 characters. */
  edgeId: string
  /** The right label: SUPPORTS, REFUTES or NEUTRAL. Required; CITES edges can't be corrected. */
  correctRelation: EdgeRelation
  /** As in DomainBlock. */
  taskId: string
}

/** The label that a person gave an edge. Whether it differs from the model's prediction is no part of it. */
export interface EdgeLabelValue {
  /** The label: SUPPORTS, REFUTES or NEUTRAL. Required, unless it is cleared. */
  relation: EdgeRelation
  /** No person's label: the model's applies. Only proposed, never a resource. */
  cleared: boolean
}

/** The entity that an alias means. */
export interface EntityAliasValue {
  /** The entity's id in the application, 1 to 256 characters. */
  entityId: string
}

/** The wrong entity was chosen. Learns ENTITY_ALIAS: alias → entity id. */
export interface EntityCorrection {
  /** The alias that the user used, 1 to 512 characters. It becomes the key. */
  originalInput: string
  /** The id of the entity that the system chose, if known. At most 256 characters. */
  systemChoice: string
  /** The right entity's id, 1 to 256 characters; must differ from systemChoice. */
  correctChoice: string
}

/** Something that is said to be true. */
export interface EvidenceClaim {
  /** Required. */
  claimId: string
  /** The task that it belongs to. May be empty. */
  taskId: string
  /** What it says: the hypothesis of its edges. At most 32,768 characters. */
  text: string
  /**
   * The page that it was found on: its source. May be empty. A dangerous pattern blocks this page's domain, and
   * no other.
   */
  pageId: string
  /** Whether the backend adopted it. Default (0): as before, at first NOT_ADOPTED. */
  adoption: ClaimAdoption
  /**
   * Names of dangerous patterns that the backend found with it, for example those that the trust file lists; at
   * most 16. A claim with one is REJECTED unless a person restored it.
   */
  dangerousPatterns: string[]
}

/** What two nodes have to do with each other. */
export interface EvidenceEdge {
  /** Required. */
  edgeId: string
  /**
   * Required. SUPPORTS, REFUTES and NEUTRAL lead from a fragment, page or claim to a claim; CITES from a page to
   * a page.
   */
  relation: EdgeRelation
  /** From where. Required. */
  source?: NodeRef
  /** To where. Required. */
  target?: NodeRef
  /** The task that it belongs to. May be empty. */
  taskId: string
  /** What the model says it is. Default (0): its relation. None for CITES. */
  nliLabel: EdgeRelation
  /** How sure the model is, 0.0 to 1.0. Without it the edge is counted, and weighs nothing. */
  nliConfidence?: number
}

/** A node or edge of the graph. Exactly one is set. */
export interface EvidenceElement {
  /** A page. */
  pageId?: string
  /** A fragment. */
  fragmentId?: string
  /** A claim. */
  claimId?: string
  /** An edge. */
  edgeId?: string
}

/** Something that was done to a domain, claim or edge. */
export interface EvidenceEvent {
  /** Its id. Of what was done to one target the later has the greater one. */
  eventId: number
  /** What was done. */
  action: EvidenceAction
  /** The pattern, claim or edge that was decided about; not set where `element` is. */
  key?: ResourceKey
  /** The task; may be empty. What is done to a correction later has the task of that. */
  taskId: string
  /** Who did it. */
  actor?: Actor
  /**
   * Why: of a correction as its reporter said, empty if not given or erased; of all else as an operator or
   * reviewer said. That of a retraction stays in feedback-svc.
   */
  reason: string
  /**
   * What was in force before, as one word; empty: nothing was. Of an element: a page's domain, address and ids,
   * the page of a fragment or claim, an edge's source, relation and target.
   */
  before: string
  /**
   * What is in force after, as one word; empty: nothing is. Of an element as `before`; empty where it was
   * deleted.
   */
  after: string
  /** What was asked for, as one word; empty where nothing was asked for. */
  proposed: string
  /** The feedback; may be empty. */
  feedbackId: string
  /** The candidate; may be empty. */
  candidateId: string
  /** The revision that it wrote; 0: it changed nothing. */
  revision: number
  /** When. */
  at?: Date
  /** Whose correction was recorded, as the caller said; empty if not given or erased, and where none was recorded. */
  reporter: string
  /** The page, fragment, claim or edge that was replaced or deleted; not set where a decision is told. */
  element?: EvidenceElement
}

/** A part of a page. */
export interface EvidenceFragment {
  /** Required. */
  fragmentId: string
  /** The page that it is part of. Required; known, or in the same request. */
  pageId: string
  /** What it says: the premise of its edges. At most 32,768 characters. */
  text: string
}

/** A page of a source: a web page, or a paper. */
export interface EvidencePage {
  /** Required. */
  pageId: string
  /**
   * Its host, for example "blog.example.org", in any spelling. Required unless there is a `url`, whose host it is
   * by default. What only leads to what others published is nobody's source: a page at doi.org, or at an index of
   * papers, has no domain. Such a page is trusted and blocked by no rule, and is an independent source of its own
   * unless it is of a work.
   */
  domain: string
  /** Where it is. http or https, at most 2,048 characters. May be empty. */
  url: string
  /** At most 1,024 characters. */
  title: string
  /**
   * The work's DOI, with or without https://doi.org/. May be empty. Pages that share any id are one work, also by
   * way of others.
   */
  doi: string
  /** The work's PubMed id. May be empty. */
  pmid: string
  /** The work's arXiv id; its version does not matter. May be empty. */
  arxivId: string
}

/** Which samples to export. */
export interface ExportCorrectionsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only edges of this task. Default: all. */
  taskId: string
  /** Only samples with these correct labels. Default: any. */
  correctLabels: EdgeRelation[]
  /** Only reviews accepted at or after this time. Default: any. */
  from?: Date
  /** Only reviews accepted before this time. Default: any. */
  to?: Date
  /** Of 100 samples, about how many are test samples, by a hash of the edge: 0 to 99. Default: 20. */
  testPercent?: number
}

/** One sample, in the order of the reviews. */
export interface ExportCorrectionsResponse {
  /** The sample. */
  sample?: CorrectionSample
}

/** What to export. */
export interface ExportExamplesRequest {
  /** The search application. Required. */
  namespace: string
  /** What the AI is asked for. 1 to 256 characters, compared byte for byte. */
  target: string
  /** The form. Default: CHAT. */
  format: ExampleFormat
  /** The label whose current prompt is the system message, where there is one. Default: production. */
  label: string
}

/** One example. */
export interface ExportExamplesResponse {
  /**
   * A JSON object in one line. "split" is train, validation or test (80, 10 and 10 of 100), by the rated output
   * alone: the same in every export.
   */
  line: string
}

/** Which ratings to export, and how. */
export interface ExportFeedbackRequest {
  /** The search application. Required. */
  namespace: string
  /** Only these ratings. Default: all. */
  searchRatings?: SearchRatingFilter
  /** Only those received at or after this time. */
  receivedFrom?: Date
  /** Only those received before this time. */
  receivedBefore?: Date
  /** The form. Required. */
  format: ExportFormat
  /**
   * Marks the ratings that gave a line as processed, once the next part is asked for. One without results gives
   * no pair and no judgment: it is not marked.
   */
  markProcessed: boolean
}

/** A part of the export. */
export interface ExportFeedbackResponse {
  /** Whole lines. All parts in order are the export. */
  text: string
  /** How many ratings gave a line of it. */
  ratingCount: number
  /** These ratings, in the order of their lines. */
  ratings: ExportedRating[]
}

/** Which task to export. */
export interface ExportMaterialsRequest {
  /** The search application. Required. */
  namespace: string
  /** The task. Required. NOT_FOUND if nothing was upserted for it. */
  taskId: string
  /** Whether countAll and onePerSource of the claims are set. */
  bothReadings: boolean
}

/**
 * One line of an export: pages first, then fragments, claims and edges, each in the order in which they were
 * first upserted. Edges are those of the task; a node comes if it belongs to the task or if the task's claims or
 * edges name it.
 */
export interface ExportMaterialsResponse {
  /** A page. */
  page?: ExportedPage
  /** A fragment. */
  fragment?: EvidenceFragment
  /** A claim. */
  claim?: Claim
  /** An edge. */
  edge?: Edge
}

/** A page and how far its host is trusted. */
export interface ExportedPage {
  /** The page. */
  page?: EvidencePage
  /** How far its host is trusted. */
  level: TrustLevel
}

/** A rating that gave lines of an export. */
export interface ExportedRating {
  /** UUID of its feedback. */
  feedbackId: string
  /** How many lines. */
  lineCount: number
}

/** A stored correction. */
export interface Feedback {
  /** UUID, assigned when the correction was stored. */
  feedbackId: string
  /** The search application. */
  namespace: string
  /** Decides which of two corrections is newer. Assigned by the database; increasing, with gaps. */
  acceptOrder: number
  /** As sent; may be empty. */
  requestId: string
  /** The person or agent who made the correction. */
  reporter?: Reporter
  /** The authenticated client that sent it. */
  caller: string
  /** The query that the correction is about; may be empty. */
  queryId: string
  /** Why, in the reporter's words; masked. */
  reason: string
  /** As sent, with values masked. */
  context: Record<string, string>
  /** Who the correction is learned for. */
  scope: Scope
  /** What is wrong and what is right. */
  correction?: Correction
  /** When it was stored, by the database's clock. */
  receivedAt?: Date
  /** When it was retracted; absent if it was not retracted. */
  retractedAt?: Date
  /** Why it was retracted; masked. */
  retractReason: string
  /**
   * The result of evaluating its newest event, as it was then: it stays as it is, whatever others say later;
   * `present` says what has become of it. PENDING with reason NOT_EVALUATED until learning-svc has answered.
   */
  outcome?: Outcome
  /** The delivery state of its newest event. DELIVERED of a rating of a search answer, which has none. */
  deliveryState: DeliveryState
  /** When its personal parts were erased: by a redaction, or by age. Absent if they were not. */
  redactedAt?: Date
  /**
   * What has become of what it supports, as learning-svc says now. Only GetFeedback, ListFeedback and submissions
   * whose requestId was used before ask for it, for at most 1 s. Absent if learning-svc does not answer in that
   * time, if another installation answers, and if nothing is known there of this feedback; never a reason for an
   * error.
   */
  present?: Standing
  /** What is known about a rating of a search answer beside what was said; absent for all other feedback. */
  searchRating?: SearchRatingState
}

/**
 * One rated output, as its live ratings have it together: of each reporter the newest counts. It is a good one
 * where more of them say good than bad, and one to avoid where more say bad. In a set it stands once. Its texts
 * are masked, and cut after a number of characters (policy).
 */
export interface FewShotExample {
  /**
   * UUID of the feedback of the newest live rating of its class, of which input and output are. The example goes
   * once the ratings that are neither retracted nor redacted no longer come to its class.
   */
  feedbackId: string
  /** What the AI was given. */
  input: string
  /** What it made of it. */
  output: string
  /**
   * What it should have made of it: as the newest of its 16 newest live bad ratings says that says so. Empty
   * where none does, and of good examples.
   */
  corrected: string
  /**
   * What is wrong with the output: what those 16 ratings say, each once, most named first, at most 176. None of
   * good examples.
   */
  issues: string[]
  /** UUID of the output, made of the target id of its ratings: equal for all of them. */
  outputId: string
}

/** The newest rated examples for one target. */
export interface FewShotSetValue {
  /** The language of the headings and labels with which they are shown. Default (0): EN. Never returned as 0. */
  language: Language
  /** Examples of good outputs, the newest first; at most 20. */
  good: FewShotExample[]
  /** Examples to avoid, the newest first; at most 20. */
  bad: FewShotExample[]
}

/** The first of two approvals. */
export interface FirstApproval {
  /** Who approved it. Another caller has to be the second. */
  actor?: Actor
  /** Why; may be empty. */
  reason: string
  /** When. */
  approvedAt?: Date
}

/** Which prompt to improve. */
export interface GenerateImprovementRequest {
  /** The search application. Required. */
  namespace: string
  /** What the AI is asked for. 1 to 256 characters, compared byte for byte. */
  target: string
  /** The label whose prompt is improved. Default: production. */
  label: string
  /** For whom, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The improvement. */
export interface GenerateImprovementResponse {
  /** It awaits review. */
  candidate?: Candidate
  /** What it changes, and why. */
  improvement?: Improvement
}

/** What to make suggestions from. */
export interface GenerateSuggestionsRequest {
  /** The search application. Required. */
  namespace: string
  /** The user. Required, at most 128 characters. */
  userId: string
  /** Only what was done since then. Default: everything that is stored. The newest 500 activities are read. */
  since?: Date
  /** Also suggest how many years of experience the user has. */
  includeExperience: boolean
}

/** New suggestions. */
export interface GenerateSuggestionsResponse {
  /** The surest first; at most 50. */
  suggestions: ProfileSuggestion[]
}

/** Where to look. */
export interface GetAccessRequest {
  /**
   * The search application whose methods are listed. At most 63 characters. Empty: those that the caller may call
   * anywhere.
   */
  namespace: string
}

/** Who the caller is and what it may do. Each service answers for its own methods. */
export interface GetAccessResponse {
  /** The caller's name in feedback and in the audit trail; empty if callers are not authenticated. */
  caller: string
  /** Whether callers are authenticated. If not, everybody may do everything. */
  authenticated: boolean
  /** Whether the caller may reach all namespaces in at least one role. */
  allNamespaces: boolean
  /** The namespaces that it may reach in at least one role, sorted; empty with allNamespaces. */
  namespaces: string[]
  /** What it may call in the namespace, sorted: for example emend.learning.v1.CandidateService/ApproveCandidate. */
  methods: string[]
  /** Those of them that it may also call for a user, sorted. */
  methodsForUsers: string[]
}

/** Identifies one candidate. */
export interface GetCandidateRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
}

/** One candidate and what a reviewer needs to know about it. */
export interface GetCandidateResponse {
  /** The candidate. */
  candidate?: Candidate
  /** Its live votes, newest first, at most 100. */
  votes: Vote[]
  /** The other candidates of the contest, strongest first, at most 100. */
  rivals: Candidate[]
  /** The feedback that proposed it, newest first, at most 100. */
  feedback: SupportingFeedback[]
  /**
   * Its status changes, each with who made it, when and why: the newest 200, oldest first. An entry never
   * changes.
   */
  history: Transition[]
  /** What is kept of it as a generated prompt; absent of others. */
  improvement?: Improvement
  /** What is kept of it as a suggested entry of a profile; absent of others. */
  suggestion?: Suggestion
  /** What reviewers wrote about it for each other, oldest first, at most 200. */
  comments: ReviewComment[]
}

/** Which claim. */
export interface GetClaimRequest {
  /** The search application. Required. */
  namespace: string
  /** The claim. Required. */
  claimId: string
  /** Whether countAll and onePerSource of the claim are set. */
  bothReadings: boolean
}

/** One claim. */
export interface GetClaimResponse {
  /** The claim. */
  claim?: Claim
}

/** Identifies one feedback item. */
export interface GetFeedbackRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  feedbackId: string
}

/** One feedback item. */
export interface GetFeedbackResponse {
  /** With its outcome, and what has become of it since. */
  feedback?: Feedback
}

/** Which ratings to count. */
export interface GetFeedbackStatsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only ratings stored at this time or later. Default: all. */
  ratedFrom?: Date
  /** Only ratings stored before this time; later than ratedFrom. Default: all. */
  ratedBefore?: Date
  /** Only ratings of queries of this type. At most 64 characters. Default: all. */
  queryType: string
  /** Two versions or variants to compare. Default: none. */
  compare?: StatsComparison
  /** At most this many of the queries that were searched most; 1 to 500. Default: 10. */
  topQueryCount: number
  /** At most this many of the queries that most people rated -1; 1 to 500. Default: 10. */
  worstQueryCount: number
}

/** What ratings say. */
export interface GetFeedbackStatsResponse {
  /** All of them. */
  total?: RatingShare
  /** By week, the oldest first: the newest 1,000 in which there were ratings or queries. */
  weeks: RatingShare[]
  /**
   * By type of query, whether there were ratings or only queries: here as below the 1,000 names with the most
   * ratings, then queries, the most first.
   */
  queryTypes: RatingShare[]
  /** By embedding version. */
  embeddingVersions: RatingShare[]
  /** By index version. */
  indexVersions: RatingShare[]
  /** By variant. */
  variants: RatingShare[]
  /** The comparison that was asked for. Its names are found whether or not a list has them. */
  compared?: StatsCompared
  /** What the lists leave out. `total` counts it. */
  leftOut?: StatsLeftOut
  /** What was searched most, and how often results were clicked. */
  recent?: RecentSearches
  /** What most people rated -1. */
  worst?: WorstQueries
}

/** Identifies the policy of a namespace. */
export interface GetNamespacePolicyRequest {
  /** The search application. Required. */
  namespace: string
}

/** The policy in force. */
export interface GetNamespacePolicyResponse {
  /** The current policy. */
  policy?: NamespacePolicy
}

/** Whose ratings to count. */
export interface GetOutputStatsRequest {
  /** The search application. Required. */
  namespace: string
  /** What the AI is asked for. 1 to 256 characters, compared byte for byte. */
  target: string
}

/**
 * The ratings of a target. Of the ratings of one output by one voter the newest that was neither retracted nor
 * redacted counts.
 */
export interface GetOutputStatsResponse {
  /** By version of the prompt, the version with the newest rating first; at most 100. */
  versions: OutputVersionStats[]
  /** Since the newest proposal: how many are good. */
  goodSinceProposal: number
  /** Since the newest proposal: how many are neutral. */
  neutralSinceProposal: number
  /** Since the newest proposal: how many are bad. */
  badSinceProposal: number
  /** When the newest proposal was made; absent if none was. */
  proposedAt?: Date
  /** How many more bad ratings an improvement needs; 0 if none. */
  badMissing: number
  /** Whether GenerateImprovement would generate now. */
  canGenerate: boolean
  /** Why it would not, in UPPER_SNAKE_CASE: TOO_FEW_RATINGS, NO_PROMPT or IMPROVEMENT_OPEN; empty if it would. */
  cannotReason: string
  /** UUID of the improvement that awaits review; empty if none does. */
  openCandidateId: string
  /** The number of the version that is current under the label production; 0 if none is. */
  currentVersion: number
  /**
   * What an improvement would be made of: ratings of the current version, and all that arrived since it was made
   * current. How many are good.
   */
  goodCounted: number
  /** Likewise: how many are neutral. */
  neutralCounted: number
  /** Likewise: how many are bad. */
  badCounted: number
}

/** Identifies one policy. */
export interface GetPolicyRequest {
  /** The search application. Required. */
  namespace: string
  /** The kind. Required. */
  kind: ResourceKind
}

/** The policy in force. */
export interface GetPolicyResponse {
  /** The current policy. */
  policy?: Policy
}

/** Whose profile. */
export interface GetProfileRequest {
  /** The search application. Required. */
  namespace: string
  /** The user. Required, at most 128 characters. */
  userId: string
}

/** The profile. */
export interface GetProfileResponse {
  /** As it is now. */
  profile?: Profile
}

/** What to count. */
export interface GetQueueStatsRequest {
  /** The search application. Required. */
  namespace: string
  /** How many UTC days, today included, 1 to 90. Default (0): 30. */
  days: number
}

/** The review queue in figures. Entries of profiles are not counted. */
export interface GetQueueStatsResponse {
  /** One for each day and kind on which anything happened, oldest first, then by kind. */
  days: QueueDay[]
  /** One for each kind of which anything waits for a person now. */
  waiting: QueueWaiting[]
  /**
   * The kinds that their policies freeze, in the order of their numbers: corrections of them are kept, and
   * nothing is learned.
   */
  frozenKinds: ResourceKind[]
}

/** Identifies one resource. */
export interface GetResourceRequest {
  /** The resource's key. Required. */
  key?: ResourceKey
  /**
   * Answer from a state at least this new. Waits for it until the deadline, at most 5 s, then UNAVAILABLE with
   * RetryInfo.
   */
  minRevision: number
}

/** One resource. */
export interface GetResourceResponse {
  /** The resource. */
  resource?: Resource
}

/** What to count. */
export interface GetReviewStatsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only edges of this task. Default: all. */
  taskId: string
  /** Only edges that the model gave this label. Default (0): any. */
  predictedLabel: EdgeRelation
  /** Only reviews accepted at or after this time. Default: any. */
  from?: Date
  /** Only reviews accepted before this time. Default: any. */
  to?: Date
}

/** How often the model was wrong. */
export interface GetReviewStatsResponse {
  /** Edges that a person reviewed, each counted once. */
  reviewed: number
  /** Of these, edges that a person corrected. */
  corrected: number
  /** corrected / reviewed, 0.0 to 1.0; 0 where nothing was reviewed. */
  errorRate: number
  /** The same for each pair of labels that there is. */
  labels: LabelStats[]
}

/** Whose settings to return. */
export interface GetSettingsRequest {
  /** The search application. Required. */
  namespace: string
}

/** The settings in force. */
export interface GetSettingsResponse {
  /** The settings. */
  settings?: Settings
}

/** Why a row is invalid. */
export interface ImportError {
  /** As sent. */
  line: number
  /** The violated field, relative to the row. */
  field: string
  /** What is wrong, with the bound. */
  description: string
}

/** How to import. */
export interface ImportHeader {
  /** The search application. Required. */
  namespace: string
  /** What to do with bad rows. Default: ALL_OR_NOTHING. */
  mode: ImportMode
  /** What each row counts as. Default: DECISION. */
  importAs: ImportAs
  /** Why. At most 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
  /**
   * Only check the rows: nothing is written, and the response reports the bad ones whatever the mode. What a
   * policy alone refuses is not found so. Default: false.
   */
  validateOnly: boolean
}

/** The header or rows of an import. */
export interface ImportResourcesRequest {
  /** How to import. */
  header?: ImportHeader
  /** What to import. */
  rows?: ImportRows
}

/** The result of an import. */
export interface ImportResourcesResponse {
  /** UUID, carried by all revisions of this import. */
  operationId: string
  /** Rows that changed something; of a correction of a term, its equivalents. */
  appliedCount: number
  /** Rows whose value was already in place. */
  unchangedCount: number
  /** Rows that were invalid and skipped. */
  rejectedCount: number
  /** The first revision that was written; 0 if none was. */
  firstRevision: number
  /** The last revision that was written; 0 if none was. */
  lastRevision: number
  /** The bad rows, at most 1,000, ordered by line. */
  errors: ImportError[]
}

/** One row. */
export interface ImportRow {
  /** The line or entry in the source, starting at 1; errors refer to it. */
  line: number
  /**
   * The row's content: a phrase mapping, an entity correction (alias), a prohibition or a correction of a term,
   * whose equivalents are decided and counted one by one.
   */
  correction?: Correction
  /** The only user it applies to; empty for everybody. At most 128 characters. */
  userId: string
}

/** Rows of an import. */
export interface ImportRows {
  /** 1 to 1,000 rows per message. */
  rows: ImportRow[]
}

/** What is kept of a generated prompt. */
export interface Improvement {
  /** The label under which it would be current. */
  label: string
  /** The text of the prompt that it was made for. */
  previousText: string
  /** The proposed text. */
  text: string
  /** From the one to the other, as a unified diff with three lines of context; empty where they are equal. */
  diff: string
  /** How many ratings it was made of. */
  ratingCount: number
  /** How many of these were good. */
  goodCount: number
  /** How many were neutral. */
  neutralCount: number
  /** How many were bad. */
  badCount: number
  /** Why it is better, in the generator's words. */
  reason: string
  /** What generated it: "embedded", or the model's name. */
  generator: string
  /**
   * How many of the ratings that it was made of have been redacted since: what they said may still be in the
   * text.
   */
  redactedCount: number
}

/** The verb that a phrase invokes. */
export interface InvocationPhraseValue {
  /** The verb's id in the application, 1 to 256 characters. */
  verb: string
}

/** How often the model said one thing and people another, or the same. */
export interface LabelStats {
  /** What the model said. */
  predictedLabel: EdgeRelation
  /** What people say. */
  correctLabel: EdgeRelation
  /** How many edges. */
  edges: number
}

/** Something that there is to learn. */
export interface Learning {
  /** The application's own id, 1 to 256 characters. */
  id: string
  /**
   * What it is about, in any spelling: at most 50 entries of 1 to 512 characters. None: it is left out for
   * nobody.
   */
  topics: string[]
  /** How much it expects. Default: BASIC. */
  level: LearningLevel
}

/** Which blocked domains to list. */
export interface ListBlockedDomainsRequest {
  /** The search application. Required. */
  namespace: string
  /**
   * Maximum number of results, 1 to 1,000. Default (0): 100. A page may be shorter, also empty, before the last
   * one.
   */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of blocked domains. */
export interface ListBlockedDomainsResponse {
  /** The newest decision first. */
  domains: BlockedDomain[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which candidates to list. */
export interface ListCandidatesRequest {
  /** The search application. Required. */
  namespace: string
  /** Only these kinds. Default: all. */
  kinds: ResourceKind[]
  /** Only these statuses. Default: all. */
  statuses: CandidateStatus[]
  /** Only the contest of this key, which the server normalises. At most 512 characters. Default: any. */
  key: string
  /** Maximum number of results, 1 to 500. Default (0): 50. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /**
   * Only what is this user's own. Requires the right to act for users. At most 128 characters. Default:
   * everything but entries of profiles, which only their own user's list has.
   */
  userId: string
  /** In which order. */
  order: CandidateOrder
  /** Only candidates first proposed before this time. Default: any. */
  createdBefore?: Date
  /** Only candidates first proposed at or after this time. Default: any. */
  createdAfter?: Date
  /**
   * Only candidates whose key, or whose value as written, contains this text, whatever the case. At most 200
   * characters. Default: any. A page looks at no more than 1,500 candidates (see searchedCount): it may be short,
   * or empty, and others follow as long as there is a nextPageToken.
   */
  text: string
  /** Only candidates that somebody was asked about and has not answered. */
  secondOpinion?: SecondOpinionFilter
  /**
   * Only candidates that this person approved, rejected, set, deleted, reverted or ruled about since
   * decidedAfter, and nobody changed since; or approved as the first of two, whatever the second decided; or
   * commented on: by the name of a caller, of a reporter, or on whose behalf one acts. At most 128 characters.
   * Default: any.
   */
  decidedBy: string
  /** With decidedBy: since when, at most 7 days ago. Default: 24 hours ago. */
  decidedAfter?: Date
  /** Only candidates that one reviewer approved, where the policy needs two. */
  needsSecondReviewer: boolean
}

/** A page of candidates. */
export interface ListCandidatesResponse {
  /** In the order asked for. */
  candidates: Candidate[]
  /** Empty on the last page. */
  nextPageToken: string
  /**
   * With text: how many candidates were looked at for this page, at most 1,500. What stands behind them is not
   * searched yet where there is a nextPageToken.
   */
  searchedCount: number
}

/** Which claims to list. */
export interface ListClaimsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only those of this task. Default: all. */
  taskId: string
  /** Only those of this status. Default (0): any. */
  status: ClaimStatus
  /** Only those of this adoption. Default (0): any. */
  adoption: ClaimAdoption
  /**
   * Maximum number of results, 1 to 1,000. Default (0): 100. A page may be shorter, also empty, before the last
   * one.
   */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of claims. */
export interface ListClaimsResponse {
  /** The claims. */
  claims: Claim[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which dead letters to list. */
export interface ListDeadLettersRequest {
  /** Only this search application's. Default: all that the caller may read. */
  namespace: string
  /** Maximum number of results, 1 to 500. Default (0): 50. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of dead letters. */
export interface ListDeadLettersResponse {
  /** Oldest first. */
  deadLetters: DeadLetter[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which decisions about domains to list. */
export interface ListDomainRulesRequest {
  /** The search application. Required. */
  namespace: string
  /** Only those of this pattern. Default: any. */
  pattern: string
  /** Only those of this layer: human, file or verified. Default: any. */
  layer: string
  /**
   * Also those that ended or were taken back or rejected; those that await review are in the review queue.
   * Default: only those in force.
   */
  includeEnded: boolean
  /**
   * Maximum number of results, 1 to 1,000. Default (0): 100. A page may be shorter, also empty, before the last
   * one.
   */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of decisions. */
export interface ListDomainRulesResponse {
  /** The newest first. */
  rules: DomainRuleRecord[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which edges to list. */
export interface ListEdgesRequest {
  /** The search application. Required. */
  namespace: string
  /** Only those of this claim, at either end. Default: any. */
  claimId: string
  /** Only those of these relations, as corrected. Default: any. */
  relations: EdgeRelation[]
  /** Only those whose source's domain is trusted this far. Default: any. */
  levels: TrustLevel[]
  /** Only those that a person reviewed, or did not. Default: any. */
  reviewed?: boolean
  /** Only those that a person corrected, or did not. Default: any. */
  corrected?: boolean
  /** Only those of this task. Default: any. */
  taskId: string
  /**
   * Maximum number of results, 1 to 1,000. Default (0): 100. A page may be shorter, also empty, before the last
   * one.
   */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /** Only this edge. Default: any. */
  edgeId: string
}

/** A page of edges. */
export interface ListEdgesResponse {
  /** The edges. */
  edges: Edge[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which events to list. */
export interface ListEvidenceEventsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only those about this target: a pattern, claim id or edge id, with `kind`. Default: any. */
  target: string
  /**
   * What `target` is: DOMAIN_RULE, CLAIM_STATE or EDGE_LABEL. Required with `target`. Of a claim or edge also
   * what was replaced or deleted of it is listed.
   */
  kind: ResourceKind
  /** Only those of this task. Default: any. */
  taskId: string
  /** Only those of this caller. Default: any. */
  caller: string
  /** Only those at or after this time. Default: any. */
  from?: Date
  /** Only those before this time. Default: any. */
  to?: Date
  /**
   * Maximum number of results, 1 to 1,000. Default (0): 100. A page may be shorter, also empty, before the last
   * one.
   */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /**
   * Only those about this page or fragment, or about this claim or edge, as with `target`. Not together with
   * `target`. Default: any.
   */
  element?: EvidenceElement
}

/** A page of events. */
export interface ListEvidenceEventsResponse {
  /** The newest first. */
  events: EvidenceEvent[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which feedback to list. */
export interface ListFeedbackRequest {
  /** The search application. Required. */
  namespace: string
  /** Maximum number of results, 1 to 500. Default (0): 50. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /** Only feedback from this reporter; at most 128 characters. Default: any. */
  reporterId: string
  /** Only corrections that would be learned as this kind. Default: any. */
  kind: ResourceKind
  /** Only feedback in this delivery state. Default: any. */
  deliveryState: DeliveryState
  /** Only feedback received at or after this time. */
  receivedFrom?: Date
  /** Only feedback received before this time. */
  receivedBefore?: Date
  /**
   * Only ratings of this target, as in Rating.target, whether it can still be rated or not. Default: any
   * feedback.
   */
  ratingTarget: string
  /** Only ratings with this value, as in Rating.value. INVALID_ARGUMENT without ratingTarget. */
  ratingValue: string
  /**
   * Only feedback received on this day, as YYYY-MM-DD: from its first instant in timeZone until the first of the
   * next day, which need not be 24 hours later. Narrowed further by receivedFrom and receivedBefore. Default: any
   * day.
   */
  day: string
  /**
   * The time zone of `day`, by its name in the IANA database, for example Asia/Tokyo. INVALID_ARGUMENT without
   * day. Default: UTC.
   */
  timeZone: string
  /**
   * Only ratings of search answers, and of them only these. Not together with kind or ratingTarget, which they
   * have not.
   */
  searchRatings?: SearchRatingFilter
}

/** A page of feedback. */
export interface ListFeedbackResponse {
  /** Newest first. */
  feedback: Feedback[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which ratings to look at. */
export interface ListNegativeTermsRequest {
  /** The search application. Required. */
  namespace: string
  /** Only ratings stored at this time or later. Default: all. */
  ratedFrom?: Date
  /** Only ratings stored before this time; later than ratedFrom. Default: all. */
  ratedBefore?: Date
  /** Only ratings of queries of this type. At most 64 characters. Default: all. */
  queryType: string
  /** At most this many words; 1 to 500. Default: 50. */
  pageSize: number
}

/** The words that stand out. */
export interface ListNegativeTermsResponse {
  /** The words, the one that stands out most first. */
  terms: NegativeTerm[]
  /** Queries that the newest 10,000 ratings of -1 are about. */
  negativeQueryCount: number
  /** All queries that were ever recorded. */
  queryCount: number
  /**
   * How often a word was pruned from the counts of all queries: of a namespace the 100,000 most frequent words
   * are kept.
   */
  prunedWordCount: number
  /**
   * By how much the queryCount of a word may be too low because it was pruned, and began again: at most this. 0
   * where none was pruned.
   */
  undercount: number
}

/** Which nodes to list. */
export interface ListNodesRequest {
  /** Maximum number of results, 1 to 1,000. Default (0): 100. */
  pageSize: number
  /** From the previous response. */
  pageToken: string
  /** Only nodes heard from within this time. Default: 24 h. In milliseconds. */
  seenWithin?: number
  /** Only nodes in this state. Default: any. */
  state: NodeState
  /** Only nodes in this zone, compared byte for byte. At most 64 characters. Default: any. */
  zone: string
  /** Only nodes that have all of these labels: each KEY=VALUE, or KEY for any value; at most 16. Default: any. */
  labels: string[]
}

/** A page of nodes. */
export interface ListNodesResponse {
  /**
   * Ordered by id. Where only some nodes are asked for, a page may have fewer of them than pageSize, even none,
   * although more follow.
   */
  nodes: Node[]
  /** Empty on the last page. */
  nextPageToken: string
  /** The head of the log at the time of the response. */
  headRevision: number
}

/** Whose targets to count the ratings of. */
export interface ListOutputStatsRequest {
  /** The search application. Required. */
  namespace: string
  /** Maximum number of results, 1 to 50. Default (0): 20. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of targets. */
export interface ListOutputStatsResponse {
  /** In the order of their names. */
  targets: TargetStats[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which prompt. */
export interface ListPromptVersionsRequest {
  /** The search application. Required. */
  namespace: string
  /**
   * What the AI is asked for. 1 to 256 characters, compared byte for byte. With onlyRedacted it may be empty: of
   * all targets.
   */
  target: string
  /** Maximum number of results, 1 to 100. Default (0): 20. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /**
   * Only versions and proposals generated from ratings that have been redacted since, and those that people
   * edited from such: what the ratings said may still be in their texts.
   */
  onlyRedacted: boolean
}

/** A page of versions. */
export interface ListPromptVersionsResponse {
  /** The greatest number first; with onlyRedacted that which was made last. */
  versions: PromptVersion[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which queries to list. */
export interface ListQueriesRequest {
  /** The search application. Required. */
  namespace: string
  /** At most this many; 1 to 500. Default: 50. */
  pageSize: number
  /** The nextPageToken of the page before. Default: the first page. */
  pageToken: string
  /** Only the query with this id, whatever the conditions below. At most 128 characters. Default: all. */
  queryId: string
  /** Only queries of this type. At most 64 characters. Default: all. */
  queryType: string
  /** Only queries that found nothing: those whose hitCount is 0, none of which it is not known. Default: all. */
  onlyWithoutHits: boolean
  /** Only queries searched at this time or later. */
  searchedFrom?: Date
  /** Only queries searched before this time; later than searchedFrom. */
  searchedBefore?: Date
}

/** One page of queries. */
export interface ListQueriesResponse {
  /** The queries, newest first. Those whose personal parts are erased have no texts and no session. */
  queries: Query[]
  /** Continues the list; empty on the last page. */
  nextPageToken: string
}

/** Which resources to list. */
export interface ListResourcesRequest {
  /** The search application. Required. */
  namespace: string
  /** Only these kinds. Default: all. */
  kinds: ResourceKind[]
  /**
   * Only keys with this prefix, which the server brings into the form of the kinds' keys, into that of phrases
   * where `kinds` is empty or their forms differ. At most 512 characters. Default: any.
   */
  keyPrefix: string
  /** Only this user's own resources. Default: only GLOBAL resources. */
  userId: string
  /** Answer from a state at least this new. */
  minRevision: number
  /** Maximum number of results, 1 to 1,000. Default (0): 100. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of resources. */
export interface ListResourcesResponse {
  /** Ordered by kind, key, qualifier. */
  resources: Resource[]
  /** Empty on the last page. */
  nextPageToken: string
  /** The revision of the state that answered. */
  revision: number
  /** How many resources of these kinds are one user's own, of all users together and whatever their keys. */
  userScopedCount: number
}

/** Which revisions to list. */
export interface ListRevisionsRequest {
  /** The search application. Required; only changes to it are returned. */
  namespace: string
  /** Only revisions that changed this kind. Default: any. */
  kind: ResourceKind
  /** Only revisions that changed this key, which the server normalises. Default: any. */
  key: string
  /** Only revisions of this operation. UUID. Default: any. */
  operationId: string
  /** Maximum number of results, 1 to 500. Default (0): 50. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
  /** Only this revision. Default (0): any. */
  revision: number
}

/** A page of the audit trail. */
export interface ListRevisionsResponse {
  /** Newest first. */
  revisions: Revision[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** Which suggestions to list. */
export interface ListSuggestionsRequest {
  /** The search application. Required. */
  namespace: string
  /** The user. Required, at most 128 characters. */
  userId: string
  /** Only these statuses. Default: AWAITING_REVIEW. */
  statuses: CandidateStatus[]
  /** Maximum number of results, 1 to 500. Default (0): 50. */
  pageSize: number
  /** From the previous response; the other fields must be unchanged. */
  pageToken: string
}

/** A page of suggestions. */
export interface ListSuggestionsResponse {
  /** The newest first. */
  suggestions: ProfileSuggestion[]
  /** Empty on the last page. */
  nextPageToken: string
}

/** A learned answer. */
export interface Match {
  /** The verb or entity id. */
  value: string
  /** Always 1.0. */
  score: number
  /** Where it came from. */
  source: MatchSource
  /** The revision that applied it. */
  revision: number
  /** Whether it is the user's own (USER) or everybody's (GLOBAL). */
  scope: Scope
}

/** What one list of results weighs. */
export interface MergeWeight {
  /** The list, for example keyword: 1 to 64 characters, without white space, commas, = and +. */
  name: string
  /** The weight, 0.0 to 100.0. */
  weight: number
}

/** What is settled for a namespace as a whole. */
export interface NamespacePolicy {
  /** The search application. Required. */
  namespace: string
  /** What of the edges of a claim weighs in its confidence. All are counted. Default: COUNT_ALL. */
  combining: Combining
  /** With fewer claims than this a domain is not blocked for those that are rejected, 1 to 1,000,000. Default 5. */
  minClaims: number
  /** A domain is blocked where more of 1,000 of its claims are rejected, 0 to 1,000. Default 300. */
  rejectedPermille: number
  /** Increases by 1 with each change. 0: never set. Output only. */
  version: number
  /** Send it back to change only the version you saw (ABORTED if it has changed). */
  etag: string
  /** When it was last changed; absent for the default. Output only. */
  updatedAt?: Date
}

/** What a phrase that nobody corrected most likely means. */
export interface NearAnswer {
  /** The verb or entity id. */
  choice: string
  /** How likely it is right, 0.0 to 1.0: at least minConfidence of NEAR_LOOKUP. */
  confidence: number
  /** The nearest phrases that were learned, the nearest first. */
  because: NearPhrase[]
  /** The model that answered. Equal models give equal answers, on every node and in every language. */
  model: string
}

/**
 * How phrases that nobody corrected are answered by what was learned for similar ones. What is left out has its
 * default; what is returned has everything.
 */
export interface NearLookupValue {
  /** The confidence from which on a near answer is given, 0.0 to 1.0 in steps of 0.001. Default: 0.8. */
  minConfidence?: number
  /** How near answers are found. Default: LEXICAL. */
  method: NearMethod
  /**
   * SHA-256 of the file of vectors that nodes add, 64 hexadecimal digits in lower case. A node that has other
   * vectors or none says so and answers by words alone. Default: empty, no vectors.
   */
  vectors: string
  /** Nothing is set: the defaults apply. Only proposed, never a resource. */
  cleared: boolean
}

/** A phrase that was learned. */
export interface NearPhrase {
  /** In normal form. */
  phrase: string
  /** What it means. */
  choice: string
  /** How similar it is, 0.0 to 1.0. */
  similarity: number
}

/** A word that stands out. */
export interface NegativeTerm {
  /**
   * The word as the newest of these queries has it, in lower case and full width. Words that differ in the
   * long-vowel mark or in quotes only are counted as one.
   */
  term: string
  /**
   * Its TF-IDF: the share of the negative queries that have it, times ln((1 + all queries) / (1 + queries with
   * it)).
   */
  score: number
  /** Queries rated -1 that have it. */
  negativeCount: number
  /** All queries that have it. */
  queryCount: number
}

/** A search node as last seen. */
export interface Node {
  /** The node's description of itself. */
  info?: NodeInfo
  /** The caller that opened its stream. */
  caller: string
  /** Whether it has an open stream to any replica, as far as the replicas have reported. */
  connected: boolean
  /** What it has applied, as last reported. */
  applied?: Cursor
  /** How many revisions it is behind the head; 0 if current or never reported. */
  lagRevisions: number
  /** Resources that it could not use, at most 100. */
  rejected: RejectedResource[]
  /** Total number of resources that it rejects. */
  rejectedCount: number
  /** Delays as last reported. */
  delays?: DelayHistogram
  /** Its last reported problem; may be empty. */
  problem: string
  /** When its stream was last opened. */
  connectedAt?: Date
  /** When it was last heard from. */
  seenAt?: Date
}

/** A node's description of itself. */
export interface NodeInfo {
  /** Stable id of the node, 1 to 128 characters of [A-Za-z0-9._:-]. Required. */
  id: string
  /** The node's software version. At most 64 characters. */
  version: string
  /** The node's location. At most 64 characters. */
  zone: string
  /** Free-form labels. At most 16 entries; keys 1 to 63 characters, values at most 128. */
  labels: Record<string, string>
  /**
   * Whether the node is no longer listed once its stream has ended, such as a person's session. Default: false,
   * so that operators see which nodes are gone.
   */
  transient: boolean
}

/** A node. Exactly one is set. */
export interface NodeRef {
  /** A page. */
  pageId?: string
  /** A fragment. */
  fragmentId?: string
  /** A claim. */
  claimId?: string
}

/**
 * The result of evaluating one correction against the state at that time. A correction with several effects has
 * one outcome for each in `effects`; the other fields are then those of the least advanced effect (WITHDRAWN,
 * REFUSED, REJECTED, NO_EFFECT, PENDING, AWAITING_REVIEW, APPLIED), but for `wasNew`, `autoApplied` (of any),
 * `revision` (the newest) and `message`.
 */
export interface Outcome {
  /** The state of the correction. */
  state: OutcomeState
  /**
   * A stable machine-readable reason in UPPER_SNAKE_CASE; empty if the state alone says enough. NOT_EVALUATED,
   * BELOW_THRESHOLD, RIVALS, PINNED, HIGH_RISK, REVERTED, DELETED, PERSONAL_DATA, RETRACTED, RESOURCE_LIMIT,
   * ERASED, FROZEN, NOT_ENTITLED, NEWER_RULING, NOTHING_TO_CLEAR, NEUTRAL, REPLACED, OUTVOTED, NOT_IN_WINDOW,
   * REDACTED, TARGET_NOT_FOUND, NOT_CORRECTABLE, PERSON_DECIDES, BASE_CHANGED, EDITED, NOTHING_TO_LEARN.
   */
  reason: string
  /** The candidate it supports. UUID; empty where ratings decide. */
  candidateId: string
  /** The kind of resource that the correction is about. */
  kind: ResourceKind
  /** The risk level that applied. */
  riskLevel: RiskLevel
  /** How often this value was proposed. */
  occurrenceCount: number
  /** How many distinct voters support it now. */
  reporterCount: number
  /** Net confirmations still missing; 0 if none. */
  confirmationsNeeded: number
  /** This correction created the candidate. */
  wasNew: boolean
  /** This correction caused the promotion. */
  autoApplied: boolean
  /** The threshold of net confirmations that applied. */
  thresholdApplied: number
  /** What was learned, or would be, as this correction says it. */
  whatWasLearned?: WhatWasLearned
  /** One sentence for the reporter, in the reporter's own words. It says nothing that others wrote. */
  message: string
  /** When it was evaluated, by learning-svc's clock. */
  evaluatedAt?: Date
  /** The revision that this evaluation wrote; else that of the contest's current resource; 0 if there is none. */
  revision: number
  /**
   * One per effect, in the correction's order, if it has several; empty for all others. Effects have no effects
   * of their own.
   */
  effects: Outcome[]
  /**
   * Where the state is REJECTED: the reason that the person gave who rejected the value, as that person wrote it;
   * empty if none was given, and in every other state.
   */
  decisionReason: string
}

/** The ratings of what one version of a prompt made. */
export interface OutputVersionStats {
  /** As the ratings say; may be empty. */
  promptVersion: string
  /** How many are good. */
  good: number
  /** How many are neutral. */
  neutral: number
  /** How many are bad. */
  bad: number
  /** When the first of them was received. */
  firstRatedAt?: Date
  /** When the newest of them was received. */
  lastRatedAt?: Date
}

/** A phrase means this verb. Votes in the same contest as a VerbCorrection of that phrase. */
export interface PhraseMapping {
  /** The phrase, 1 to 512 characters. */
  phrase: string
  /** The verb it invokes, 1 to 256 characters. */
  verb: string
}

/** What it takes to learn resources of one kind in one namespace. */
export interface Policy {
  /** The search application. Required. */
  namespace: string
  /** The kind. Required. */
  kind: ResourceKind
  /**
   * How much harm a wrong promotion does. Defaults: INVOCATION_PHRASE, PROHIBITION and SYNONYM MEDIUM,
   * ENTITY_ALIAS LOW. This field to maxDerivedVoters and maxCountedFeedback are for kinds that are decided by
   * votes.
   */
  riskLevel: RiskLevel
  /** Net confirmations required at MEDIUM risk, 1 to 1,000. Default 3. LOW always requires 1. */
  threshold: number
  /** How votes are counted. Default: DISTINCT_VOTERS. */
  counting: Counting
  /**
   * A vote's weight halves in this time, 1 h to 3,650 days. Absent (the default): votes do not decay. In
   * milliseconds.
   */
  halfLife?: number
  /**
   * How many voters derived from one caller, by session or from the caller itself, count in one contest, 1 to
   * 1,000. Default 1.
   */
  maxDerivedVoters: number
  /**
   * Maximum number of resources of this kind in the namespace, 1 to 2,000,000. Default 2,000,000. A promotion
   * beyond it awaits review; a first set of examples waits for the next rating or policy.
   */
  maxResources: number
  /**
   * Maximum encoded size of one value in bytes, 1 to 524,288. Default 524,288. A set of examples holds the newest
   * that fit.
   */
  maxValueBytes: number
  /** How many of a contest's newest corrections are counted, 100 to 100,000. Default 10,000. */
  maxCountedFeedback: number
  /** Increases by 1 with each change. 0: never set. Output only. */
  version: number
  /** Send it back to change only the version you saw (ABORTED if it has changed). */
  etag: string
  /** When it was last changed; absent for the default. Output only. */
  updatedAt?: Date
  /** Contests not yet re-evaluated under this version. Output only. */
  reevaluationRemaining: number
  /**
   * Corrections put nothing into force. They are still taken, with the reason FROZEN once they would apply, and
   * are decided when this is taken back. What people set, approve, reject, delete and revert takes effect, and so
   * do retractions and redactions; an example that they take away is not replaced meanwhile. Default: false.
   */
  frozen: boolean
  /** DOMAIN_RULE. */
  ruling?: RulingPolicy
  /** FEW_SHOT_SET. */
  window?: WindowPolicy
  /** PROMPT. PROFILE has it too, without effect. */
  review?: ReviewPolicy
  /**
   * How many reviewers have to approve what a person applies from the review queue, 1 or 2. Two must be different
   * authenticated callers: FAILED_PRECONDITION (AUTHENTICATION_NEEDED) where callers are not authenticated. One
   * is enough to reject, for what is one user's own, and to put, revert or import. A policy whose riskLevel is
   * HIGH and that needs two thus applies nothing without both. For kinds that votes, rulings or review decide.
   * Default 1.
   */
  reviewersNeeded: number
}

/** Which candidate to try on which queries. */
export interface PreviewCandidateRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID of the candidate. Required. */
  candidateId: string
  /** What was searched lately, at most 1,000; feedback-svc keeps it (ListQueries). */
  queries: PreviewQuery[]
}

/** What would change. */
export interface PreviewCandidateResponse {
  /** The difference. */
  changes?: PreviewedChanges
}

/** Which improvement to preview. */
export interface PreviewImprovementRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID of a version that awaits review; FAILED_PRECONDITION (reason NOT_OPEN) if it does not. Required. */
  candidateId: string
  /** On how many of the newest rated inputs, 1 to 20. Default (0): 5. */
  inputs: number
}

/** What would change. */
export interface PreviewImprovementResponse {
  /** What is kept of it. */
  improvement?: Improvement
  /** For each input, the bad ones first, else the newest first. */
  inputs: PreviewedInput[]
  /** Whether a generator was configured that ran the prompts. */
  wasRun: boolean
}

/** Which change of a policy to try on which queries. */
export interface PreviewPolicyRequest {
  /** The new values, as in UpdatePolicy. */
  policy?: Policy
  /**
   * Which fields to change, as in UpdatePolicy. Without any, and without `near`, INVALID_ARGUMENT. Names of
   * fields in camelCase.
   */
  updateMask?: string[]
  /**
   * How phrases of the kind that nobody corrected would be answered (the value of NEAR_LOOKUP). Absent: as they
   * are.
   */
  near?: NearLookupValue
  /** What was searched lately, at most 1,000; feedback-svc keeps it (ListQueries). */
  queries: PreviewQuery[]
}

/** What would change. */
export interface PreviewPolicyResponse {
  /** What would be applied at once, at most 100. */
  resources: PreviewedResource[]
  /** How many contests would apply another value. */
  resourceCount: number
  /** How many contests were looked at: those in which something waits, the newest 1,000. */
  contestCount: number
  /** How answers would differ. */
  changes?: PreviewedChanges
}

/** A query that was searched, once or several times, or that was judged. */
export interface PreviewQuery {
  /** What was searched for, 1 to 512 characters. */
  text: string
  /** How often, 1 or more. Default (0): 1; of a judged query none. */
  searchCount: number
  /** How often what was answered was rated as good. */
  ratedUpCount: number
  /** How often it was rated as bad. */
  ratedDownCount: number
  /**
   * The choices that somebody judged to be right for it, at most 10 of at most 512 characters. Default: it was
   * not judged.
   */
  rightChoices: string[]
}

/** A query whose answer would change. */
export interface PreviewedAnswer {
  /** The query, as it was given first. */
  text: string
  /** How often it was searched. */
  searchCount: number
  /** The answer now; empty: none. */
  before: string
  /** Whether that is a near one. */
  beforeIsNear: boolean
  /** The answer then; empty: none. */
  after: string
  /** Whether that is a near one. */
  afterIsNear: boolean
  /** As in PreviewedChanges, of this query. */
  ratedForCount: number
  /** As in PreviewedChanges, of this query. */
  ratedAgainstCount: number
  /** As in PreviewedChanges, of this query. */
  correctedForCount: number
  /** As in PreviewedChanges, of this query. */
  correctedAgainstCount: number
  /** As in PreviewedChanges, of this query. */
  judgedForCount: number
  /** As in PreviewedChanges, of this query. */
  judgedAgainstCount: number
}

/** How answers would differ. */
export interface PreviewedChanges {
  /** The queries whose answers would change, those that were searched most first: at most 100. */
  answers: PreviewedAnswer[]
  /** How many different queries were answered, after normalisation. */
  queryCount: number
  /** How many of them would be answered differently. */
  changedQueryCount: number
  /** How many searches these were. */
  changedSearchCount: number
  /** Of the searches whose answers would change, those that were rated as bad, which speaks for the change. */
  ratedForCount: number
  /** Those that were rated as good, which speaks against it. */
  ratedAgainstCount: number
  /** How many people corrected these queries, towards the new answers. */
  correctedForCount: number
  /** How many corrected them towards other answers. */
  correctedAgainstCount: number
  /** Whether near answers were compared, and if not, why not. */
  nearStatus: NearStatus
  /** The revision of the state that answered. */
  revision: number
  /**
   * Of the queries whose answers would change, those that were judged and would be answered right, and are not
   * now.
   */
  judgedForCount: number
  /** Those that were judged and are answered right now, and would not be any more. */
  judgedAgainstCount: number
}

/** One input that was rated. */
export interface PreviewedInput {
  /** UUID of the rating's feedback. */
  feedbackId: string
  /** What the AI was given. */
  input: string
  /** What it made of it then. */
  output: string
  /** What the rating counts as. */
  ratedAs: RatingClass
  /** What it should have made of it; empty where nobody said. */
  corrected: string
  /** What was wrong with the output. */
  issues: string[]
  /**
   * The prompt that it was made for, as it would be sent with this input and no examples. A variable named input
   * is filled with it, other variables without a default with their own place; a prompt without it is followed by
   * the input.
   */
  previousPrompt: string
  /** The proposed one, likewise. */
  prompt: string
  /** What the configured model makes of previousPrompt; empty where none is configured or it failed. */
  previousRun: string
  /** What it makes of prompt. */
  run: string
  /** Why it made nothing; empty if it did. */
  runError: string
}

/** What a contest would apply. */
export interface PreviewedResource {
  /** Its key. */
  key?: ResourceKey
  /** What applies now; absent: nothing. */
  before?: ResourceValue
  /** What would apply; absent: nothing. */
  after?: ResourceValue
}

/** What a user knows and wants to learn. */
export interface Profile {
  /** The search application. Required. */
  namespace: string
  /** The user. Required, at most 128 characters. */
  userId: string
  /** How many years of experience the user has, 0 to 80; absent if not known. */
  experienceYears?: number
  /**
   * What the user is a specialist in: at most 200 entries of 1 to 512 characters. Entries that differ only in
   * case, width or space are one. Returned sorted.
   */
  specialties: string[]
  /** The technologies that the user knows; as specialties. */
  knownTechnologies: string[]
  /** What the user wants to learn; as specialties. */
  learningGoals: string[]
  /** Opaque. Send it back to change only the profile you saw (ABORTED if it has changed). */
  etag: string
  /** The newest revision that changed it; 0: none did. Output only. */
  revision: number
}

/** A suggested entry of a profile. */
export interface ProfileSuggestion {
  /** The candidate: its key is the entry, its value how it is written; its status and who decided it. */
  candidate?: Candidate
  /** What is suggested, and why. */
  suggestion?: Suggestion
}

/** One entry of a user's profile. */
export interface ProfileValue {
  /**
   * An entry of specialties, knownTechnologies or learningGoals, as the user writes it, 1 to 512 characters. As a
   * phrase it is the key's qualifier.
   */
  entry?: string
  /** For experienceYears: 0 to 80. */
  years?: number
}

/** Never offer this choice for this phrase. */
export interface Prohibition {
  /** The phrase, 1 to 512 characters. */
  phrase: string
  /** The verb or entity id to exclude, 1 to 256 characters. */
  forbiddenChoice: string
}

/** A choice that must never be offered for the phrase. */
export interface ProhibitionValue {
  /** The verb or entity id to exclude, 1 to 256 characters. Equal to the key's qualifier. */
  forbiddenChoice: string
}

/** One change of what became of a version under a label. */
export interface PromptDecision {
  /** The label. */
  label: string
  /**
   * From which status to which, by whom, when and why. A version that a person puts, approves with changes or
   * takes over from another label is created as PENDING and applied at once: two entries.
   */
  transition?: Transition
}

/** A setting of a model, for example its name or its temperature. */
export interface PromptSetting {
  /** Its name, 1 to 64 characters of [a-z0-9_], beginning with a letter; unique in the prompt. */
  name: string
  /** Its value, 1 to 1,024 characters. */
  value: string
}

/** One version of a prompt. */
export interface PromptValue {
  /** Its number among the versions of its target. Output only: whatever is sent, the server gives the next one. */
  version: number
  /**
   * The text, 1 to 32,768 characters, kept byte for byte. {{name}} and {{ name }} are places of the variable of
   * that name; other braces are text.
   */
  text: string
  /** The variables of the text, at most 32. Each must have a place in it. */
  variables: PromptVariable[]
  /** Settings of the model, as the application reads them, at most 32; returned sorted by name. */
  settings: PromptSetting[]
}

/** A place in a prompt where each call has a text of its own. */
export interface PromptVariable {
  /** Its name, 1 to 64 characters of [a-z0-9_], beginning with a letter; unique in the prompt. */
  name: string
  /** What stands there where a call says nothing, at most 32,768 characters. Absent: each call must say. */
  defaultValue?: string
}

/** One version of a prompt. */
export interface PromptVersion {
  /** The candidate that it is: its value, status, proposal, and who changed its status last. */
  candidate?: Candidate
  /** The labels under which it is current, sorted. */
  labels: string[]
  /**
   * How many of the ratings that it, or the proposal that a person edited to make it, was generated from have
   * been redacted since: what they said may still be in its text.
   */
  redactedCount: number
  /**
   * What was decided about it under each label, by whom, when and why: the newest 50, the oldest first. What
   * others do later takes nothing away: an entry never changes.
   */
  history: PromptDecision[]
}

/** What is kept of a candidate that is a proposal under review. */
export interface Proposal {
  /** The number of its version, never used again: of a prompt among all versions of its target. */
  version: number
  /**
   * The version that was current when it was made; 0: none was. Once another one is current, it can't be approved
   * any more (ABORTED).
   */
  baseVersion: number
  /**
   * When a person approved it, or wrote it; absent if nobody did. At most one of these two is set, and it changes
   * only if the decision is undone.
   */
  approvedAt?: Date
  /** When a person rejected it; absent if nobody did. */
  rejectedAt?: Date
  /**
   * How many of the ratings that it, or the proposal that a person edited to make it, was generated from have
   * been redacted since: what they said may still be in the text. It is approved only with `acceptRedacted`.
   * Filled in by ListCandidates and GetCandidate; 0 elsewhere.
   */
  redactedCount: number
}

/** Sets a value. */
export interface PutResourceRequest {
  /** The resource's key. Required. */
  key?: ResourceKey
  /** The value, of the key's kind. Required. If display is empty, the key as sent is used. */
  value?: ResourceValue
  /**
   * Act only if the resource still has this etag (ABORTED otherwise); "0": only if there is none. Empty:
   * unconditional.
   */
  etag: string
  /** Why. At most 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The resource that was set. */
export interface PutResourceResponse {
  /** The resource's new state. */
  resource?: Resource
  /** The revision that was written; 0 if it already had this value. */
  revision: number
  /**
   * What may not be meant, as sentences: a prompt's {{name}} that is none of its variables, and is sent as it
   * stands; a label under which no prompt of another target is current, which perhaps nobody follows.
   */
  warnings: string[]
}

/** One search as the backend that ran it recorded it: what was asked, what was found, and by which index. */
export interface Query {
  /**
   * The backend's id of the search, unique within its namespace. Required; 1 to 128 characters. Of several
   * queries with one id the first counts.
   */
  queryId: string
  /** What was searched for. Required; 1 to 2,000 characters; personal data is masked before it is stored. */
  queryText: string
  /**
   * What the user was answered beside the results, for example by a language model. At most 8,000 characters;
   * personal data is masked before it is stored.
   */
  answerText: string
  /**
   * How it was searched: SEMANTIC, HYBRID, FILTERABLE, GREETING, or a type of the application's own. At most 64
   * characters.
   */
  queryType: string
  /**
   * What a classifier made of the query, in a few words. At most 500 characters; personal data is masked before
   * it is stored.
   */
  classification: string
  /** The best results, best first. At most 100 are accepted; the 5 with the highest scores are kept. */
  topResults: QueryResult[]
  /** The parts of the index that were searched. At most 32, each of 1 to 64 characters. */
  namespaces: string[]
  /** The score that a result needed to be shown. A finite number. Absent: none. */
  minScore?: number
  /** Which model made the embeddings. At most 64 characters. */
  embeddingVersion: string
  /** Which index was searched. At most 64 characters. */
  indexVersion: string
  /** The version of the client from which the user searched. At most 64 characters. */
  clientVersion: string
  /** The build of the backend. At most 64 characters. */
  build: string
  /** Which variant of an experiment the user saw. At most 64 characters. */
  variant: string
  /**
   * The user's session: queries of one session are looked at together, to find out which rewording worked. At
   * most 128 characters.
   */
  sessionId: string
  /**
   * How many results there were. 0 to 2^31 − 1; at least as many as topResults. Absent: as many as topResults,
   * and if there are none of those either, not known: 0 is said, never inferred.
   */
  hitCount?: number
  /** When it was searched; at most 5 minutes in the future. Absent: when the service received it. */
  searchedAt?: Date
  /**
   * When it was stored, by the database's clock: it is kept for as long from then as the namespace's settings
   * say. Output only.
   */
  recordedAt?: Date
  /**
   * What users did with its results, oldest first, at most 100: of more, clicks before other actions. Output
   * only.
   */
  interactions: QueryInteraction[]
}

/** What a user did with a result. */
export interface QueryInteraction {
  /** The query whose result it was. Required; 1 to 128 characters. It may be recorded later than this. */
  queryId: string
  /** The result's id in the index. Required; 1 to 256 characters. */
  objectId: string
  /**
   * What was done: click, or another action's name. Whatever has `click` in its name is a click, like UBI's
   * `item_click` and `clickThrough`; an impression is none. Required; 1 to 100 characters, kept in lower case.
   */
  action: string
  /** The place of the result in the list, the first being 1. 0 (the default): not known. At most 100,000. */
  position: number
  /** When it was done; at most 5 minutes in the future. Absent: when the service received it. */
  actedAt?: Date
}

/** One result of a query. */
export interface QueryResult {
  /** Its title. At most 300 characters; longer ones are cut. */
  title: string
  /** Its score. A finite number. */
  score: number
  /** Its id in the index. At most 256 characters. */
  objectId: string
}

/**
 * A candidate's status changed, who has it open, or what reviewers wrote about it. A first approval of two is
 * sent with the same status before and after. A candidate that is new and PENDING is not sent: it is once it has
 * another status. A lease that expires is not sent either: `lease.expiresAt` says when.
 */
export interface QueueChange {
  /** UUID. */
  candidateId: string
  /** The contest. */
  key?: ResourceKey
  /** Its status after the change. */
  status: CandidateStatus
  /**
   * Its status before; UNSPECIFIED if it was created. The same as `status` where only the lease or the comments
   * changed, and after a first approval.
   */
  previousStatus: CandidateStatus
  /** Who changed the status or approved it first; absent where only the lease or the comments changed. */
  decidedBy?: Actor
  /** Who has it open, when this is sent; absent if nobody has. */
  lease?: ReviewLease
  /** The revision that the change belongs to; 0 if no resource changed. */
  revision: number
}

/** What happened to one kind on one day. */
export interface QueueDay {
  /** The UTC day, as YYYY-MM-DD. */
  day: string
  /** The kind. */
  kind: ResourceKind
  /** Corrections received that propose a value, also those that were retracted since. */
  receivedCount: number
  /** Times that a candidate was applied, by votes or by people. */
  appliedCount: number
  /** Times that a candidate was rejected. */
  rejectedCount: number
  /**
   * Times that a candidate was withdrawn, or that a person took back what it had applied, by reverting or
   * undoing.
   */
  withdrawnCount: number
}

/** Nothing changed. */
export interface QueueKeepAlive {
}

/** The watch has begun. */
export interface QueueOpened {
}

/** Changes were left out. */
export interface QueueResync {
}

/** What waits for a person. */
export interface QueueWaiting {
  /** The kind. */
  kind: ResourceKind
  /** How many candidates are AWAITING_REVIEW. */
  count: number
  /** When the oldest of them was first proposed. */
  oldestCreatedAt?: Date
}

/** A paper and its related papers. */
export interface RankCitationsRequest {
  /** The search application. Required. */
  namespace: string
  /** The paper's page. Required; NOT_FOUND if it was never upserted. */
  pageId: string
  /** Papers that it cites or that cite it; 1 to 500. */
  related: RelatedPaper[]
  /** How many of the best become pages, 1 to 100. Default (0): 10. */
  keep: number
  /** The task of the edges. May be empty. */
  taskId: string
}

/** What became of the papers. */
export interface RankCitationsResponse {
  /** The best, the best first: they are pages now, joined by CITES edges. */
  ranked: RankedPaper[]
  /** Pages of papers without an abstract. */
  toBeFetched: string[]
  /** How many were the same work as another one. */
  merged: number
}

/** What to order, and for whom. */
export interface RankLearningsRequest {
  /** The search application. Required. */
  namespace: string
  /** The user. Required, at most 128 characters. */
  userId: string
  /** What there is to learn, 1 to 1,000 items. */
  learnings: Learning[]
}

/** The order for the user. */
export interface RankLearningsResponse {
  /** The ids of what to show, in order. */
  ids: string[]
  /** The ids of what is left out, in the order given. */
  leftOutIds: string[]
}

/** A paper with its score. */
export interface RankedPaper {
  /** Its page. */
  pageId: string
  /** 0.5 influential + 0.3 similarity + 0.2 relevance. */
  score: number
  /** The CITES edge. */
  edgeId: string
  /** The fragment that its abstract is. */
  fragmentId: string
  /** The pageId with which it was given: another one where its page was there already. */
  givenPageId: string
}

/** A target of the application's own: an output of its AI that can be rated. */
export interface RatedTarget {
  /**
   * Its name, 1 to 64 characters, trimmed and compared byte for byte; the key of its few-shot set. Not one of the
   * targets that every namespace has.
   */
  name: string
  /** The values that a rating may have: 1 to 20, each of another name. */
  values: RatedValue[]
  /** Whether the output is a judgement, so that a rating may say what the right one is (correctJudgement). */
  isJudgement: boolean
}

/** One value of a target of the application's own. */
export interface RatedValue {
  /** Its name, 1 to 64 characters, trimmed and compared byte for byte. */
  name: string
  /** What a rating with this value counts as from now on. Required. */
  countsAs: RatingClass
}

/**
 * What an AI made is good, or is not. Decides FEW_SHOT_SET: the newest good and the newest bad ratings of a
 * target are its examples. A second rating of the same targetId by the same voter replaces the first. The scope
 * must be GLOBAL. Texts are masked for personal data before they are stored; a redaction erases them and takes
 * the example away.
 */
export interface Rating {
  /**
   * What the AI was asked for: INTERPRET, SUMMARIZE_HOURLY, SUMMARIZE_DAILY, EVALUATE, TASK_EXTRACT, or a target
   * of the application's own (SettingsService, ratedTargets).
   */
  target: string
  /**
   * How it was found. With INTERPRET: GOOD or BAD. With SUMMARIZE_HOURLY and SUMMARIZE_DAILY: GOOD, NEUTRAL or
   * BAD. With EVALUATE: CORRECT, which counts as good, or FALSE_POSITIVE or MISSED, which count as bad. With
   * TASK_EXTRACT: APPROVED, which counts as good, or REJECTED, which counts as bad. With a target of the
   * application's own: one of its values.
   */
  value: string
  /** Which output it is about, by the application's own id, 1 to 256 characters. */
  targetId: string
  /** What the AI was given, 1 to 262,144 bytes (256 KiB). Empty in feedback that was redacted. */
  inputText: string
  /** What it made of it, 1 to 262,144 bytes (256 KiB). Empty in feedback that was redacted. */
  outputText: string
  /** The version of the prompt with which it was made, if known. At most 128 characters. */
  promptVersion: string
  /**
   * What is wrong with the output: at most 10 entries of 1 to 256 characters. Why a task was rejected stands
   * here, so that the AI is shown it with the example; what only people are to read stands in the feedback's
   * reason.
   */
  issues: string[]
  /** What it should have been, if known. At most 262,144 bytes (256 KiB). */
  correctedText: string
  /**
   * The right judgement, for targets whose output is a judgement: EVALUATE, and those of the application's own
   * that say so. At most 256 characters; empty if nobody said.
   */
  correctJudgement: string
  /**
   * What the value counted as when the rating was stored; it stays so, whatever becomes of the target. Output
   * only: INVALID_ARGUMENT where it is something else.
   */
  countsAs: RatingClass
}

/**
 * How often one reporter may rate search answers, over all replicas: so many in any 60 seconds, and so many in
 * any hour.
 */
export interface RatingLimits {
  /** 1 to 1,000. Default (0): 10. */
  perMinute: number
  /** 1 to 10,000, not less than perMinute. Default (0): 100. */
  perHour: number
}

/** Ratings and queries of one week, type, version or variant. */
export interface RatingShare {
  /**
   * Its name; of a week the date of its Monday in UTC, as YYYY-MM-DD. Empty: not known, as of ratings whose query
   * is missing.
   */
  name: string
  /** All ratings. */
  ratingCount: number
  /** Ratings of -1. */
  negativeCount: number
  /** Ratings of 1. */
  positiveCount: number
  /**
   * Recorded queries, by whole days in UTC. A day is kept for two years, and so are the names of the newest
   * 100,000 combinations of a day, a type, two versions and a variant: older ones count under the empty name.
   */
  queryCount: number
  /** negativeCount / ratingCount, 0 to 1. Absent without ratings. */
  negativeShare?: number
  /** The lower end of the 95 % confidence interval of negativeShare (Wilson). Absent without ratings. */
  negativeShareLow?: number
  /** Its upper end. Absent without ratings. */
  negativeShareHigh?: number
  /** Of queryCount those that found nothing: whose hitCount is 0. */
  zeroHitCount: number
  /** Of queryCount those of which it is not known how many results they found. */
  unknownHitCount: number
  /** zeroHitCount / (queryCount − unknownHitCount), 0 to 1. Absent without queries whose hitCount is known. */
  zeroHitShare?: number
  /** The lower end of the 95 % confidence interval of zeroHitShare (Wilson). Absent where that is. */
  zeroHitShareLow?: number
  /** Its upper end. Absent where zeroHitShare is. */
  zeroHitShareHigh?: number
}

/**
 * Searches whose queries are still kept: the newest 100,000 of the period and type that were asked for, by when
 * they were searched. Those whose texts are erased are left out.
 */
export interface RecentSearches {
  /** All of them. */
  all?: ClickThrough
  /** By variant, those with the most searches first: at most 100. */
  variants: ClickThrough[]
  /** Queries, those with the most searches first. */
  topQueries: TopQuery[]
  /** How many further queries there are. */
  leftOutQueryCount: number
  /** How many further variants there are. `all` counts them. */
  leftOutVariantCount: number
}

/** What was done. */
export interface RecordActivityRequest {
  /** The search application. Required. */
  namespace: string
  /** Who did it. Required, at most 128 characters. */
  userId: string
  /** 1 to 100. */
  activities: Activity[]
}

/** What was stored. */
export interface RecordActivityResponse {
  /** How many of them were new. */
  recorded: number
}

/** Interactions to record. */
export interface RecordInteractionRequest {
  /** The search application. Required. */
  namespace: string
  /** The interactions: 1 to 100. */
  interactions: QueryInteraction[]
}

/** How many were dropped. */
export interface RecordInteractionResponse {
  /** Interactions that were not recorded, the last ones of the request. 0: all wait to be stored. */
  droppedCount: number
  /** Why; unspecified where none was dropped. */
  dropReason: DropReason
}

/** Queries to record. */
export interface RecordQueryRequest {
  /**
   * The search application. Required; 1 to 63 characters of [a-z0-9-], beginning and ending with a letter or
   * digit.
   */
  namespace: string
  /** The queries: 1 to 100. */
  queries: Query[]
}

/** How many were dropped. */
export interface RecordQueryResponse {
  /** Queries that were not recorded, the last ones of the request. 0: all wait to be stored. */
  droppedCount: number
  /** Why; unspecified where none was dropped. */
  dropReason: DropReason
}

/** Identifies the feedback item whose personal parts are erased. */
export interface RedactFeedbackRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  feedbackId: string
  /** When to return. EVALUATED: once learning-svc has erased its part, too. Default: RECORDED. */
  wait: Wait
}

/** The redacted feedback. */
export interface RedactFeedbackResponse {
  /** With redactedAt set and its personal parts empty. */
  feedback?: Feedback
}

/** Identifies the reporter about whom everything is erased. */
export interface RedactReporterRequest {
  /** The search application. Required. */
  namespace: string
  /** As in Reporter.id. Required; 1 to 128 characters. */
  reporterId: string
}

/** How far the erasure is. */
export interface RedactReporterResponse {
  /** Feedback items of this reporter redacted by this call. */
  redactedCount: number
  /** Feedback items of this reporter that are still to be redacted; a worker goes on with them. 0: all are. */
  remainingCount: number
  /**
   * Redactions of this reporter, of whatever call, that learning-svc has not confirmed yet. 0 with remainingCount
   * 0: both services have erased everything.
   */
  undeliveredCount: number
}

/** Which dead letters to redeliver. */
export interface RedriveDeadLettersRequest {
  /** Only this search application's. Required unless eventIds is set. */
  namespace: string
  /** Only these events, at most 500. Default: all of the namespace. */
  eventIds: string[]
}

/** How many dead letters were made due. */
export interface RedriveDeadLettersResponse {
  /** Number of dead letters that are due again. */
  redrivenCount: number
}

/** Rejects a candidate. */
export interface RejectCandidateRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** As last seen. Empty: act on the current version. */
  etag: string
  /** Why. Shown to reporters who propose the value again. Required, 1 to 2,000 characters. */
  reason: string
  /** The reviewer, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The rejected candidate. */
export interface RejectCandidateResponse {
  /** The candidate's new state. */
  candidate?: Candidate
  /** The revision that was written; 0 if no resource changed. */
  revision: number
}

/** Which suggestion to reject. */
export interface RejectSuggestionRequest {
  /** The search application. Required. */
  namespace: string
  /** The user whose profile it is for: NOT_FOUND if it is another's. Required. */
  userId: string
  /** UUID. Required. */
  candidateId: string
  /** Why. At most 2,000 characters. Default: "rejected by the user". */
  reason: string
  /** As last seen. Empty: act on the current version. */
  etag: string
}

/** What was rejected. */
export interface RejectSuggestionResponse {
  /** The suggestion, as it is now. */
  suggestion?: ProfileSuggestion
}

/** A resource that a node could not use. It never blocks other resources. */
export interface RejectedResource {
  /** The rejected resource. */
  key?: ResourceKey
  /** Its revision. */
  revision: number
  /** The error. At most 512 characters. */
  error: string
}

/** A paper related to another. */
export interface RelatedPaper {
  /**
   * Its page, with a pageId of its own; its domain may be empty, also without a url. Papers with one DOI, PMID or
   * arXiv id are one: the first one's page stands for all, with the first domain that is known. A page that is
   * there already under one of these ids, its pageId or otherPageIds is used instead.
   */
  page?: EvidencePage
  /**
   * Its abstract, at most 32,768 characters: it becomes a fragment of the page. A paper without one is not
   * ranked, and listed as to be fetched.
   */
  abstract: string
  /** Whether the citation is an influential one. */
  isInfluential: boolean
  /** How similar it is, 0.0 to 1.0. */
  similarity: number
  /** How relevant it is to the task, 0.0 to 1.0. */
  relevance: number
  /** Whether it cites the paper; otherwise the paper cites it. */
  citesThePaper: boolean
  /** Other ids under which its page may be known, for example openalex:W2741809807; at most 8. */
  otherPageIds: string[]
}

/** Closes a candidate. */
export interface ReleaseReviewLeaseRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  candidateId: string
  /** The reviewer, as given when the lease was acquired. At most 128 characters. */
  onBehalfOf: string
}

/** The lease is not one's own any more. */
export interface ReleaseReviewLeaseResponse {
}

/** What to render. */
export interface RenderPromptRequest {
  /** The search application. Required. */
  namespace: string
  /** What the AI is asked for. 1 to 256 characters, compared byte for byte. */
  target: string
  /** The label that is followed. Default: production. */
  label: string
  /**
   * The texts of variables, by name. Required: those without a default. INVALID_ARGUMENT: others than the
   * prompt's.
   */
  variables: Record<string, string>
  /** Whose profile to add. Requires the right to act for users. At most 128 characters. Default: nobody's. */
  userId: string
  /** The language of headings around examples and profile. Default: that of the target's examples, else EN. */
  language: Language
  /**
   * Answer only from a state that has this revision; waits up to 5 s for it, then UNAVAILABLE. Default (0): from
   * any.
   */
  minRevision: number
}

/** The prompt as it is sent to the AI. */
export interface RenderPromptResponse {
  /** The whole text. */
  text: string
  /** The version of the prompt: send it as promptVersion with ratings of what it makes. */
  version: number
  /** The settings of the model that belong to it. */
  settings: PromptSetting[]
  /** How many good examples are in the text. */
  goodExamples: number
  /** How many examples to avoid are in the text. */
  badExamples: number
  /** The newest revision of what it is made of. */
  revision: number
}

/**
 * The person or agent behind a correction, as the caller asserts it. The voter is `id` if set, else (caller,
 * sessionId), else the caller.
 */
export interface Reporter {
  /**
   * Stable id, unique per namespace. At most 128 characters. Optional, but without it the votes of one caller
   * count together, up to the policy's maxDerivedVoters (default 1) per contest.
   */
  id: string
  /** The session in which the correction was made. At most 128 characters. */
  sessionId: string
  /** The client software, for example "web/4.2". At most 128 characters. */
  client: string
  /** A keyed hash of the end user's address, computed by the backend; for rate limits. At most 128 characters. */
  clientKey: string
}

/** A phrase to look up. */
export interface ResolveRequest {
  /** The search application. Required. */
  namespace: string
  /** The kind to look up: INVOCATION_PHRASE or ENTITY_ALIAS. Required. */
  kind: ResourceKind
  /** What the user said, 1 to 512 characters. */
  phrase: string
  /** Prefer this user's own resource. At most 128 characters. */
  userId: string
  /** What the backend would answer by itself, at most 100; used to compute feedbackHint. */
  backendCandidates: BackendCandidate[]
  /** Answer from a state at least this new. */
  minRevision: number
  /**
   * Where nothing was learned for the phrase itself, answer by what was learned for similar ones, too: see
   * `near`. Default: false.
   */
  near: boolean
}

/** What a node answers. */
export interface ResolveResponse {
  /** The learned answer; absent if there is none or it is prohibited. */
  match?: Match
  /** Every choice prohibited for the phrase, sorted: remove them from the backend's own candidates. */
  prohibited: string[]
  /** A learned answer exists but is prohibited. */
  matchProhibited: boolean
  /**
   * Ask the user: nothing was learned, and of the backend's candidates that are not prohibited there is more than
   * one and the best scores below 0.9.
   */
  feedbackHint: boolean
  /** The phrase as looked up, normalised. */
  normalizedPhrase: string
  /** The revision of the state that answered. */
  revision: number
  /**
   * What was learned for similar phrases, for everybody; only where the request asks for it and nothing was
   * learned for the phrase itself. Never a prohibited choice.
   */
  near?: NearAnswer
  /** Whether near answers are given. UNSPECIFIED where the request does not ask for one. */
  nearStatus: NearStatus
}

/** What nodes consume: the learned value of one key. */
export interface Resource {
  /** Identifies the resource. In a SnapshotChunk without what that says for all its keys. */
  key?: ResourceKey
  /** The revision that gave it this value. */
  revision: number
  /** What was learned. */
  value?: ResourceValue
  /**
   * XXH3-64 of the stored bytes of `value`. Digests are computed from it, so a client can verify resources whose
   * value it cannot decode. Only the stream has the stored bytes: other answers give a display where that is the
   * key itself, too. Decimal digits.
   */
  valueChecksum: string
  /** When the revision was committed, by the database's clock. Output only. */
  committedAt?: Date
  /** Opaque. Send it with Put or Delete to act only on the version you saw. Empty on the stream. */
  etag: string
}

/** Identifies one resource, and its contest, within one installation. */
export interface ResourceKey {
  /** The search application. 1 to 63 characters of [a-z0-9-], beginning and ending with a letter or digit. */
  namespace: string
  /** What the resource is about. Required. */
  kind: ResourceKind
  /**
   * The look-up key, 1 to 512 characters. Accepted in any spelling, always returned in the form of the kind: for
   * DOMAIN_RULE a domain (lower case, A-labels, no trailing dot; *.example.org for subdomains only), for
   * FEW_SHOT_SET, CLAIM_STATE, EDGE_LABEL, PROMPT and SEARCH_TUNING the text itself, only trimmed, at most 256
   * characters, for PROFILE one of its four fields, for NEAR_LOOKUP invocationPhrase or entityAlias, for all
   * others a phrase (version 1: NFKC case-folded, white space folded and trimmed, NFC).
   */
  key: string
  /**
   * Distinguishes resources with the same key if the kind allows several: the forbidden choice for PROHIBITION
   * (at most 256 characters), the representative for SYNONYM (at most 512; accepted in any form, always returned
   * normalised), the layer for DOMAIN_RULE, the label for PROMPT (at most 256 characters; default: production),
   * the entry for PROFILE (at most 512; accepted in any form, always returned normalised), empty otherwise.
   */
  qualifier: string
  /** The user whose own preference this is; empty for everybody (scope GLOBAL). At most 128 characters. */
  userId: string
}

/** What was learned for one key: the part of a resource that its checksum covers. */
export interface ResourceValue {
  /**
   * The key as people write it, before normalisation. At most 512 characters. On the stream empty where that is
   * the key itself, in other answers always given.
   */
  display: string
  /**
   * The version of the normalisation that produced the key, currently 1; 0 where the key is no phrase. Output
   * only.
   */
  normalizationVersion: number
  /** For INVOCATION_PHRASE. */
  invocationPhrase?: InvocationPhraseValue
  /** For ENTITY_ALIAS. */
  entityAlias?: EntityAliasValue
  /** For PROHIBITION. */
  prohibition?: ProhibitionValue
  /** For SYNONYM. */
  synonym?: SynonymValue
  /** For DOMAIN_RULE. */
  domainRule?: DomainRuleValue
  /** For FEW_SHOT_SET. */
  fewShotSet?: FewShotSetValue
  /** For CLAIM_STATE. */
  claimState?: ClaimStateValue
  /** For EDGE_LABEL. */
  edgeLabel?: EdgeLabelValue
  /** For PROMPT. */
  prompt?: PromptValue
  /** For PROFILE. */
  profile?: ProfileValue
  /** For SEARCH_TUNING. */
  searchTuning?: SearchTuningValue
  /** For NEAR_LOOKUP. */
  nearLookup?: NearLookupValue
}

/** Retracts one correction. */
export interface RetractFeedbackRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  feedbackId: string
  /** Why. At most 2,000 characters; masked before it is stored. */
  reason: string
  /** When to return. Default: RECORDED. */
  wait: Wait
}

/** The retracted feedback. */
export interface RetractFeedbackResponse {
  /** With retractedAt set. Once the retraction has been evaluated, the outcome is that of the retraction. */
  feedback?: Feedback
}

/** A change that was not reverted. */
export interface RevertLeft {
  /** The resource. */
  key?: ResourceKey
  /** The revision of the operation that changed it. */
  revision: number
  /** Why it is left, in words. */
  description: string
}

/** Reverts a revision or an operation. */
export interface RevertRevisionRequest {
  /** The search application. Required. All changes of the revision must be in it. */
  namespace: string
  /** The revision to revert, 1 or more; 0 with operationId. */
  revision: number
  /** Why. Required, 1 to 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
  /** The operation to revert, a UUID; empty with revision. All of its changes must be in the namespace. */
  operationId: string
  /**
   * Counts what would be reverted and what would be left, and writes nothing. With revision, whose changes are
   * reverted all or none, it fails as reverting would.
   */
  preview: boolean
}

/** The revision or the operation was reverted. */
export interface RevertRevisionResponse {
  /** The new revision; of an operation, the last of those written, 0 if none was. */
  revision: number
  /**
   * Of an operation: the operation that reverted it, a UUID. It is the same one each time, and can itself be
   * reverted.
   */
  operationId: string
  /** Of an operation: the first of the revisions written; 0 if none was. */
  firstRevision: number
  /** How many changes were reverted, or would be. */
  revertedCount: number
  /** Of an operation: how many changes had been reverted by this same operation before. */
  alreadyCount: number
  /** Of an operation: how many changes were left as they are, or would be. */
  leftCount: number
  /** Of an operation: the first of what was left, at most 100. */
  left: RevertLeft[]
}

/** What a reviewer wrote about a candidate for other reviewers. */
export interface ReviewComment {
  /** Who wrote it. */
  actor?: Actor
  /** What. */
  comment: string
  /** Whether it asks for a second opinion. */
  asks: boolean
  /** Who is asked, by the name of a caller or on whose behalf one acts; empty: anybody else. */
  asked: string
  /** Whether it asks and has not been answered. */
  open: boolean
  /** When it was written, by the database's clock. */
  writtenAt?: Date
}

/** Somebody has a candidate open for review. */
export interface ReviewLease {
  /** Who has it open. */
  actor?: Actor
  /** When the lease ends unless it is renewed, by the database's clock. Deciding ends it too. */
  expiresAt?: Date
}

/** When something is proposed for review. */
export interface ReviewPolicy {
  /** How many bad ratings since the newest proposal an improvement of a prompt needs, 1 to 1,000. Default 3. */
  minBad: number
  /**
   * An improvement of the production prompt is generated as soon as there are that many, without a request.
   * Default: false.
   */
  automatic: boolean
}

/** The result for one item. */
export interface ReviewResult {
  /** OK, or why it failed. Field names in it are relative to the item. */
  status?: ItemError
  /** The candidate's new state; absent if the status is not OK. */
  candidate?: Candidate
  /** The revision that was written; 0 if no resource changed. */
  revision: number
}

/** One decision's atomic set of changes. */
export interface Revision {
  /** Its position in the one log; gap-free. */
  revision: number
  /** The import or bulk action it belongs to; may be empty. */
  operationId: string
  /** Why the resources changed. */
  cause: Cause
  /** Who made the change. */
  actor?: Actor
  /** The reason given; may be empty. */
  reason: string
  /** When it was committed, by the database's clock. */
  committedAt?: Date
  /** The changes in the namespace, at most 1,000. */
  changes: RevisionChange[]
  /**
   * More changes of this revision follow on the next page, because they do not fit on one: the next page begins
   * with this revision again and its following changes. Default: these are all the changes, or the last of them.
   */
  changesContinue: boolean
}

/** What a revision did to one resource. */
export interface RevisionChange {
  /** The resource's key. */
  key?: ResourceKey
  /** The value before; absent if there was none, and where it is not kept. */
  before?: ResourceValue
  /** The value after; absent if it was deleted, and where it is not kept. */
  after?: ResourceValue
  /** The candidate that was applied or removed; may be empty. */
  candidateId: string
  /** The feedback that triggered the decision; may be empty. */
  feedbackId: string
  /** The version of the policy that decided; 0 if a person decided. */
  policyVersion: number
  /**
   * It left a value that is not kept: of what ratings decide the log keeps the newest value, and of earlier ones
   * the checksum; of an erased user's values neither.
   */
  valueDropped: boolean
  /** XXH3-64 of the bytes of the value that it left; 0 if it was deleted. Decimal digits. */
  afterChecksum: string
  /**
   * Whether a newer revision changed the same resource. Then the revision can't be reverted: revert the newer one
   * first.
   */
  changedSince: boolean
}

/** What is kept of a candidate that is a ruling. */
export interface Ruling {
  /** Its place among the rulings on its key: of those that are effective the newest is in force. */
  acceptOrder: number
  /** The roles of the caller when it sent the correction; none where a person wrote it directly. */
  senderRoles: string[]
  /**
   * Whether it is effective: its sender was entitled or a person approved it, and it was neither taken back nor
   * rejected.
   */
  effective: boolean
}

/** Who decides by rulings. */
export interface RulingPolicy {
  /**
   * Whose decisions are effective at once: those who hold this role or one that includes it when they send the
   * correction. A change concerns later corrections only. Default: OPERATOR for SEARCH_TUNING, REVIEWER for the
   * others.
   */
  entitledRole: EntitledRole
}

/**
 * What a search found is good, or is not. The request's queryId is required and says which query; its reason is
 * at most 300 characters as people see them (grapheme clusters) and 4 KiB; its scope must be GLOBAL. Nothing is
 * learned from it alone: it has no effect, is never delivered to learning-svc, and its outcome is NO_EFFECT,
 * reason NOTHING_TO_LEARN. HTML in the reason and in the context is removed before it is stored. Of one
 * reporter's ratings of one query the newest counts. A reporter is known by reporter.id, else reporter.sessionId,
 * else reporter.clientKey, else all of the caller are one: each may rate so often in a minute and in an hour as
 * the settings say; beyond that, RESOURCE_EXHAUSTED (RATING_LIMIT) with RetryInfo.
 */
export interface SearchRating {
  /** How it was found. Required. */
  value: SearchRatingValue
}

/** Which ratings of search answers; all if it is empty. */
export interface SearchRatingFilter {
  /** Only those with this value. Default: any. */
  value: SearchRatingValue
  /** Only those of queries of this type, compared byte for byte. At most 256 characters. Default: any. */
  queryType: string
  /** Only those with this tag. Default: any. */
  tag: string
  /** Only those that somebody has dealt with, or only those that nobody has. Absent: any. */
  processed?: boolean
  /**
   * Only those that count: that were not retracted, and that no newer rating of the same query by the same
   * reporter replaces. Default: any.
   */
  counting: boolean
  /**
   * Only those of queries with this text, whatever its case, width and spaces. At most 2,000 characters. Default:
   * any.
   */
  queryText: string
}

/** What is known about a rating of a search answer. */
export interface SearchRatingState {
  /** Whether the query that it is about is known. */
  contextState: ContextState
  /** The type of that query, as its backend recorded it; empty while it is not known. */
  queryType: string
  /** What somebody called it, in alphabetical order. */
  tags: string[]
  /** Somebody has dealt with it. */
  processed: boolean
  /** A newer rating of the same query by the same reporter counts instead. It stays in the ledger. */
  replaced: boolean
  /**
   * The query, as its backend recorded it before the rating came or within 10 s after it. Of the interactions
   * with it, the clicks alone, whenever they come: one for each result, for at most 100 results and for all
   * topResults. Kept with the rating for longer than queries are, and erased with it. Absent unless COMPLETE;
   * only reviewers see it, in lists and by GetFeedback.
   */
  query?: Query
}

/** What is tried when nothing is found. */
export interface SearchRetry {
  /** One search after another, at most 8, until something is found. Empty: nothing is tried. */
  steps: SearchRetryStep[]
}

/** What is changed for another search. What earlier steps changed stays; each step must change something. */
export interface SearchRetryStep {
  /** Where to search, too, at most 32 names. */
  namespaces: string[]
  /** How much minScore is lowered, 0.0 to 1.0; it never falls below 0.0. */
  lowerMinScoreBy: number
  /** At least so many results, 1 to 100. Default (0): as many as before. */
  topK: number
  /** Whether the text is embedded again, with its synonyms. */
  expand: boolean
}

/** How queries of one type are searched. What is left out has its default; what is returned has everything. */
export interface SearchTuningValue {
  /** How many results, 1 to 100. Default: 10. */
  topK?: number
  /** The score from which on results are given, 0.0 to 1.0. Default: 0.4. */
  minScore?: number
  /** From which score on a result is of which confidence, at most 16; returned from the highest score down. */
  confidences: ConfidenceThreshold[]
  /** What lists of results weigh when they are merged, at most 16; returned sorted by name. */
  weights: MergeWeight[]
  /**
   * Where to search, in the backend's own names, at most 32: 1 to 64 characters each, without white space,
   * commas, = and +. Empty: where the backend searches without being told.
   */
  namespaces: string[]
  /**
   * What is tried when nothing is found. Default: search combined, too, lower minScore by 0.1 and give 20
   * results; then embed the text with its synonyms.
   */
  retry?: SearchRetry
  /**
   * What the user is told when nothing was found after all, at most 300 characters. Empty: the backend's own
   * text.
   */
  suggestion: string
  /** Nothing is set: the defaults apply. Only proposed, never a resource. */
  cleared: boolean
}

/** Which of the candidates that somebody was asked about. With none of the fields set: all. */
export interface SecondOpinionFilter {
  /**
   * Only those that wait for this reviewer: others asked for this name, or for nobody in particular. At most 128
   * characters.
   */
  asked: string
  /** Only those that this reviewer asked about. At most 128 characters. */
  askedBy: string
}

/** The settings of one namespace. */
export interface Settings {
  /** The search application. Required. */
  namespace: string
  /**
   * Personal parts of feedback are erased in both services, as by RedactFeedback, once the feedback is this old;
   * 1 h to 3,650 days. Absent (the default): they are kept until they are redacted. In milliseconds.
   */
  personalRetention?: number
  /** Increases by 1 with each change. 0: never set. Output only. */
  version: number
  /** Send it back to change only the version you saw (ABORTED if it has changed). */
  etag: string
  /** When they were last changed; absent for the defaults. Output only. */
  updatedAt?: Date
  /**
   * What can be rated beside the targets that every namespace has: at most 50, each of another name. They replace
   * all that were there. A rating that is stored keeps its target, its value and what it counts as, whatever
   * becomes of them here.
   */
  ratedTargets: RatedTarget[]
  /**
   * A recorded query is forgotten with its interactions once it was stored this long ago; 1 h to 90 days. Absent
   * (the default): 24 h. In milliseconds.
   */
  queryRetention?: number
  /**
   * How many recorded queries are kept: beyond that the oldest are forgotten; 1,000 to 1,000,000. 0 (the
   * default): 100,000. As many interactions are kept.
   */
  maxQueries: number
  /** How often one reporter may rate search answers. Absent (the default): 10 a minute and 100 an hour. */
  ratingLimits?: RatingLimits
}

/**
 * What has become of what a correction supports, as it is now: unlike an outcome, it follows what others say and
 * decide.
 */
export interface Standing {
  /**
   * The state. Of a retracted correction NO_EFFECT with reason RETRACTED, whatever else supports the value;
   * WITHDRAWN of one that was not retracted itself, where the value applied and does so no longer.
   */
  state: OutcomeState
  /** As in Outcome. */
  reason: string
  /** The candidate it supports. UUID; empty where ratings decide. */
  candidateId: string
  /** The kind of resource that it is about. */
  kind: ResourceKind
  /** Net confirmations still missing; 0 if none. */
  confirmationsNeeded: number
  /** How many distinct voters support the candidate; 0 where ratings decide. */
  reporterCount: number
  /**
   * The revision that gave the resource its value, where the state is APPLIED; 0 in every other state, and of a
   * ruling that nothing applies which never changed anything.
   */
  revision: number
  /** The state in a sentence or two. It says nothing that others wrote. */
  message: string
  /**
   * One per effect, in the correction's order where that is known, if it has several; empty for all others. The
   * state of the whole is that of the least advanced effect. Effects have no effects of their own.
   */
  effects: Standing[]
}

/** Two shares, and whether they differ by more than chance. */
export interface StatsCompared {
  /** The one. */
  one?: RatingShare
  /** The other. */
  other?: RatingShare
  /**
   * The probability of so great a difference in the share of negative ratings if there is none: two-sided z-test
   * of two proportions with the pooled share. 0 to 1; absent where a side has no ratings.
   */
  pValue?: number
  /**
   * The same of the share of queries that found nothing. Absent where a side has no queries whose hitCount is
   * known.
   */
  zeroHitPValue?: number
}

/** Two names to compare. */
export interface StatsComparison {
  /** What they are names of. Required. */
  by: StatsDimension
  /** The one, for example the version before. At most 64 characters; empty: what is not known. */
  one: string
  /** The other; another than the one. At most 64 characters. */
  other: string
}

/** How many names each list of the statistics leaves out. */
export interface StatsLeftOut {
  /** Weeks, the oldest. */
  weekCount: number
  /** Types of queries; here as below those with the fewest ratings. */
  queryTypeCount: number
  /** Embedding versions. */
  embeddingVersionCount: number
  /** Index versions. */
  indexVersionCount: number
  /** Variants. */
  variantCount: number
}

/** One correction to store. */
export interface SubmitFeedbackRequest {
  /**
   * Makes the call idempotent: a UUID, or 1 to 64 characters of [A-Za-z0-9._-]. Unique per namespace and caller,
   * and kept for at least 7 days. Optional.
   */
  requestId: string
  /**
   * The search application. Required; 1 to 63 characters of [a-z0-9-], beginning and ending with a letter or
   * digit.
   */
  namespace: string
  /** The person or agent who made the correction. */
  reporter?: Reporter
  /** The query that the correction is about. At most 128 characters. Required with searchRating. */
  queryId: string
  /**
   * Why, in the reporter's words. At most 2,000 characters, with searchRating less; personal data is masked
   * before it is stored.
   */
  reason: string
  /**
   * Anything that helps a reviewer: topic, client data. At most 32 entries, keys 1 to 64 characters, values at
   * most 1 KiB; personal data in values is masked before it is stored.
   */
  context: Record<string, string>
  /** Who the correction is learned for. Default: GLOBAL. */
  scope: Scope
  /** When to return. Default: RECORDED. */
  wait: Wait
  /** What is wrong and what is right. Required. */
  correction?: Correction
}

/** The stored feedback. */
export interface SubmitFeedbackResponse {
  /** As stored, with its outcome. */
  feedback?: Feedback
}

/** What is kept of a suggested entry of a profile. */
export interface Suggestion {
  /** What it suggests. */
  type: SuggestionType
  /** Why, in the generator's words. */
  reason: string
  /** What it comes from: CLAUDE_CODE, LEARNING, GITHUB or an application's own name. */
  sourceType: string
  /** Which activity it comes from, by the application's own id. */
  sourceId: string
  /** How sure the generator is, 0 to 1. */
  confidence: number
}

/** Feedback that proposed a candidate. */
export interface SupportingFeedback {
  /** UUID. */
  feedbackId: string
  /** What the system had chosen; may be empty. */
  systemChoice: string
  /** Why, in the reporter's words; masked. */
  reason: string
  /** As sent; masked. */
  context: Record<string, string>
  /** The query that the feedback is about; may be empty. */
  queryId: string
  /** When it was received. */
  receivedAt?: Date
  /** Whether it was retracted and no longer counts. */
  retracted: boolean
}

/** What a term stands for, and how. The relations of one pair are rivals. */
export interface SynonymValue {
  /** How the term is related to its representative. Default (0): EQUIVALENT. Never returned as 0. */
  relation: SynonymRelation
  /** The representative as people write it, 1 to 512 characters. In normal form it is the key's qualifier. */
  representative: string
}

/** The ratings of one target. */
export interface TargetStats {
  /** What the AI is asked for. */
  target: string
  /** Its ratings. */
  stats?: GetOutputStatsResponse
}

/**
 * Other terms stand for this one. Learns SYNONYM, one resource for each equivalent: equivalent → term, its
 * representative. The correction has one effect for each, decided together and taken back together.
 */
export interface TermCorrection {
  /** The representative, 1 to 512 characters: the term for which the others stand. */
  term: string
  /**
   * The terms that stand for it, 1 to 32, each of 1 to 512 characters. In normal form each must differ from the
   * term and from the others.
   */
  equivalents: string[]
  /** How they are related to the term. Default (0): EQUIVALENT. */
  relation: SynonymRelation
}

/** A query that was searched often. Queries that differ only in case, width or spaces are one. */
export interface TopQuery {
  /** The query as it was searched last, with personal data masked. Cut after 200 characters. */
  queryText: string
  /** Its searches. */
  all?: ClickThrough
  /** The same by variant, those with the most searches first: at most 10. */
  variants: ClickThrough[]
}

/** A change of a candidate's status, or its first approval of two: that may leave the status as it is. */
export interface Transition {
  /** The previous status. UNSPECIFIED if the candidate was created. */
  from: CandidateStatus
  /** The new status. */
  to: CandidateStatus
  /** Who made the change. */
  actor?: Actor
  /** Why the status changed. */
  cause: Cause
  /** The reason given, in words or as in Outcome.reason; may be empty. */
  reason: string
  /** When it changed, by learning-svc's clock. */
  at?: Date
  /** The revision it belongs to; 0 if no resource changed. */
  revision: number
  /** The version of the policy that applied. */
  policyVersion: number
}

/** What applying a trust file did in one namespace. */
export interface TrustFileApplied {
  /** The search application. */
  namespace: string
  /** The version in force now. */
  version: number
  /** Whether this call changed something; false: that version, or a newer one, was in force. */
  applied: boolean
  /** How many rules were set. */
  set: number
  /** How many rules ended. */
  ended: number
  /** The operation that its revisions belong to; empty if nothing changed. */
  operationId: string
  /** The last revision written; 0 if none was. */
  revision: number
  /**
   * Whether the version in force is that of this file and has other content: the file was changed, and its
   * version was not.
   */
  differs: boolean
  /** Whether a newer version than that of this file is in force. */
  isOlder: boolean
}

/** Queries of one type are searched so. Learns SEARCH_TUNING: query type → how. */
export interface TuningCorrection {
  /** The query type, 1 to 256 characters, compared byte for byte. */
  queryType: string
  /** How they are searched. Required; never cleared. */
  tuning?: SearchTuningValue
}

/** Undoes the last decision on a candidate. */
export interface UndoDecisionRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID of the candidate that was approved or rejected, or of the one that an edited approval made. Required. */
  candidateId: string
  /** As last seen. Empty: act on the current version. */
  etag: string
  /** The reviewer, as the caller asserts it: the same as decided. At most 128 characters. */
  onBehalfOf: string
}

/** The candidate as it was before the decision. */
export interface UndoDecisionResponse {
  /** The candidate that was decided on; where the value had been edited, the original. */
  candidate?: Candidate
  /** The revision that was written; 0 if no resource changed. */
  revision: number
}

/** What the labels of a rating of a search answer become. */
export interface UpdateFeedbackLabelsRequest {
  /** The search application. Required. */
  namespace: string
  /** UUID. Required. */
  feedbackId: string
  /**
   * Tags to set, for example synonym_miss or low_recall: 1 to 32 characters of [a-z0-9_-], beginning with a
   * letter. At most 16 in all stay with one rating.
   */
  setTags: string[]
  /** Tags to clear; those that are not there are ignored. A tag that is set must not be among them. At most 16. */
  clearTags: string[]
  /** Whether somebody has dealt with it. Absent: as it is. */
  processed?: boolean
}

/** The rating with its labels. */
export interface UpdateFeedbackLabelsResponse {
  /** As it is now. */
  feedback?: Feedback
}

/** Changes the policy of a namespace. */
export interface UpdateNamespacePolicyRequest {
  /** The new values. */
  policy?: NamespacePolicy
  /**
   * Which fields to change: combining, minClaims, rejectedPermille. Absent: every field set to something other
   * than its zero value. Names of fields in camelCase.
   */
  updateMask?: string[]
  /** Why. At most 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The changed policy. */
export interface UpdateNamespacePolicyResponse {
  /** The policy after the change. */
  policy?: NamespacePolicy
}

/** Changes a policy. */
export interface UpdatePolicyRequest {
  /** The new values. */
  policy?: Policy
  /**
   * Which fields to change: riskLevel, threshold, counting, halfLife, maxDerivedVoters, maxResources,
   * maxValueBytes, maxCountedFeedback, frozen, ruling.entitledRole, window.good, window.bad, window.maxTextChars,
   * window.language, review.minBad, review.automatic. Absent: every field set to something other than its zero
   * value. Names of fields in camelCase.
   */
  updateMask?: string[]
  /** Why. At most 2,000 characters. */
  reason: string
  /** The operator, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** The changed policy. */
export interface UpdatePolicyResponse {
  /** The policy after the change. */
  policy?: Policy
}

/** What to change. */
export interface UpdateProfileRequest {
  /**
   * The profile. A list that is changed becomes exactly what is given: entries that are not in it any more are
   * removed.
   */
  profile?: Profile
  /**
   * Which fields to change: experienceYears, specialties, knownTechnologies, learningGoals. A field that is named
   * and absent becomes empty. Default: those that are present. At most 1,000 entries may change at once. Names of
   * fields in camelCase.
   */
  updateMask?: string[]
  /** Why. At most 2,000 characters. */
  reason: string
}

/** The changed profile. */
export interface UpdateProfileResponse {
  /** As it is now. */
  profile?: Profile
  /** The revision that was written; 0 if nothing changed. */
  revision: number
}

/** What to change. */
export interface UpdateSettingsRequest {
  /** The settings, with their namespace. */
  settings?: Settings
  /**
   * Which fields to change: personalRetention, ratedTargets, queryRetention, maxQueries, ratingLimits. A field
   * that is named and absent returns to its default. Default: those that are present. Names of fields in
   * camelCase.
   */
  updateMask?: string[]
  /** Who changes them, as the caller says. At most 128 characters. */
  onBehalfOf: string
  /** Why. At most 2,000 characters. */
  reason: string
}

/** The changed settings. */
export interface UpdateSettingsResponse {
  /** With their new version and etag. */
  settings?: Settings
}

/** Nodes and edges to add or replace: 1 to 1,000 together. Nodes may be named by edges of the same request. */
export interface UpsertEvidenceRequest {
  /** The search application. Required. */
  namespace: string
  /** Pages of sources. */
  pages: EvidencePage[]
  /** Parts of pages. */
  fragments: EvidenceFragment[]
  /** Claims. */
  claims: EvidenceClaim[]
  /** Edges. */
  edges: EvidenceEdge[]
  /**
   * Whether the domain of a page, the page of a fragment or claim, and the ends of an edge may be others than
   * before. Default: they must be as before. With it, each element that is known and becomes another one is an
   * event, with what it was before and after. An edge to a claim stays one to a claim, and a CITES edge one to a
   * page.
   */
  replace: boolean
}

/** What was upserted. */
export interface UpsertEvidenceResponse {
  /** How many nodes and edges were not known before. */
  added: number
  /** How many corrections had waited for one of them. Those that somebody took back did not wait. */
  correctionsArrived: number
  /**
   * How many of these took effect: of several about one claim or edge the newest, and none that still awaits
   * review or can't be in force.
   */
  correctionsApplied: number
}

/** Which version to use. */
export interface UsePromptVersionRequest {
  /** The search application. Required. */
  namespace: string
  /** What the AI is asked for. 1 to 256 characters, compared byte for byte. */
  target: string
  /** The label. Default: production. */
  label: string
  /** The number of the version, 1 or more. Required. */
  version: number
  /** Why. At most 2,000 characters. */
  reason: string
  /** For whom, as the caller asserts it. At most 128 characters. */
  onBehalfOf: string
}

/** What is current now. */
export interface UsePromptVersionResponse {
  /** The version. */
  version?: PromptVersion
  /** The revision that was written. */
  revision: number
  /**
   * What may not be meant, in words: a label under which no prompt of another target is current, which perhaps
   * nobody follows.
   */
  warnings: string[]
}

/** The wrong verb was chosen. Learns INVOCATION_PHRASE: phrase → verb. */
export interface VerbCorrection {
  /** What the user said, 1 to 512 characters. It becomes the key. */
  originalInput: string
  /**
   * The verb that the system chose, if known. At most 256 characters. If this voter supported it before, that
   * support ends.
   */
  systemChoice: string
  /** The right verb, 1 to 256 characters; must differ from systemChoice. */
  correctChoice: string
}

/** One voter's support of a candidate. */
export interface Vote {
  /** The reporter, as the caller asserted it; empty if erased or not given. */
  reporterId: string
  /** The client that sent it. */
  caller: string
  /**
   * Whether the vote counts by itself (true) or together with the caller's other votes without a reporter id
   * (false).
   */
  identified: boolean
  /** UUID of the feedback that cast the vote. */
  feedbackId: string
  /** When that feedback was received. */
  receivedAt?: Date
}

/** What to watch. */
export interface WatchQueueRequest {
  /** The search application. Required. */
  namespace: string
  /** Only these kinds, at most 64. Default: all but entries of profiles, which are never sent. */
  kinds: ResourceKind[]
}

/** One message of a watch. */
export interface WatchQueueResponse {
  /** The watch has begun: everything committed from now on is sent. */
  opened?: QueueOpened
  /** A candidate changed. */
  change?: QueueChange
  /** Changes were left out, because they were not read in time or could not be read: load the page anew. */
  resync?: QueueResync
  /** Nothing changed for 30 s. */
  keepAlive?: QueueKeepAlive
}

/** What a correction teaches. */
export interface WhatWasLearned {
  /**
   * What the user says, as this correction has it; after a retraction in normal form. Never as another reporter
   * wrote it.
   */
  input: string
  /**
   * What it maps to: a verb, an entity id, a forbidden choice, the term that a synonym stands for, a decision
   * about a domain as one word (block, unblock, unblock:LEVEL, clear, or a level), about a claim as one word
   * (rejected, rejected:REASON_CODE, restored), the label of an edge (supports, refutes, neutral), or, of a
   * rating, "examples".
   */
  mapsTo: string
  /** The kind of resource. */
  kind: ResourceKind
}

/** How much a window of ratings shows. */
export interface WindowPolicy {
  /** How many good examples, 0 to 20. Default 5. */
  good: number
  /** How many examples to avoid, 0 to 20. Default 3. */
  bad: number
  /** After how many characters each text of an example is cut, 100 to 10,000. Default 2,000. */
  maxTextChars: number
  /** The language of the headings and labels around examples. Default: EN. */
  language: Language
}

/**
 * Queries by how many people rated their results -1: of all ratings of the period and type that were asked for,
 * those that count and that nobody has dealt with. Queries that differ only in case, width or spaces are one; a
 * query whose text is not known, or erased, is one by its id. Ratings whose personal parts are erased are left
 * out.
 */
export interface WorstQueries {
  /** Those that most people rated so first; of as many the one that was rated last. */
  queries: WorstQuery[]
  /** How many further queries there are. */
  leftOutQueryCount: number
}

/** A query whose results people rated -1. */
export interface WorstQuery {
  /** How many people did. Whoever rated it several times counts once. */
  personCount: number
  /** The id of the query that was rated last. */
  queryId: string
  /** Its text, with personal data masked; empty if it is not known, or erased. */
  queryText: string
  /** Its type, as its backend recorded it; empty if it is not known. */
  queryType: string
  /** The rating that was stored last. */
  feedbackId: string
}

/** The order of a list of candidates. */
export type CandidateOrder =
  /** The same as NEWEST_FIRST. */
  | 'UNSPECIFIED'
  /** By when they were first proposed, the newest first. */
  | 'NEWEST_FIRST'
  /** By when they were first proposed, the oldest first. */
  | 'OLDEST_FIRST'
  /** By how many voters support them, most first. Only of what is AWAITING_REVIEW: `statuses` must be just that. */
  | 'MOST_VOTES'
  /**
   * By how little their support differs from that of their strongest rival, least first; those without a rival
   * last. Only of what is AWAITING_REVIEW: `statuses` must be just that.
   */
  | 'MOST_CONTROVERSIAL'

/** Where a candidate came from. */
export type CandidateOrigin =
  /** Never returned. */
  | 'UNSPECIFIED'
  /** Corrections. */
  | 'VOTES'
  /** An edited approval. */
  | 'REVIEW'
  /** An operator's Put. */
  | 'OPERATOR'
  /** A bulk import. */
  | 'IMPORT'
  /** A generator, from what was said so far. */
  | 'GENERATOR'
  /**
   * What users did, said by nobody: queries that found nothing, and the wording that then did. A person applies
   * it, unless ordinary votes carry it.
   */
  | 'MINED'

/** The status of a candidate. */
export type CandidateStatus =
  /** In filters: any. Never returned. */
  | 'UNSPECIFIED'
  /** Gathering votes. */
  | 'PENDING'
  /** A person has to decide. */
  | 'AWAITING_REVIEW'
  /** Its value is the resource. */
  | 'APPLIED'
  /** A person rejected it. */
  | 'REJECTED'
  /** Another value of its contest replaced it, or a newer ruling is in force. */
  | 'SUPERSEDED'
  /** It lost its supporters, its resource was deleted, or the ruling was taken back. */
  | 'WITHDRAWN'

/** Why a resource changed. */
export type Cause =
  /** Not given. */
  | 'UNSPECIFIED'
  /** Votes reached the threshold. */
  | 'VOTES'
  /** A person approved or rejected a candidate. */
  | 'REVIEW'
  /** An operator put or deleted the resource. */
  | 'OPERATOR'
  /** A bulk import, as a person's decision. */
  | 'IMPORT'
  /** A revision was reverted. */
  | 'REVERT'
  /** A retraction left the value with fewer supporters than the threshold, or took a ruling back. */
  | 'RETRACTION'
  /** A changed policy was applied to pending candidates. */
  | 'POLICY'
  /** The user whose own resource it was has been erased, or a rating that was an example. */
  | 'ERASURE'
  /** A correction of an entitled person or agent came into force. */
  | 'RULING'
  /** A rating became an example, or took the place of one. */
  | 'RATING'
  /** A person's approval or rejection of a candidate was undone. */
  | 'UNDO'

/** Whether a backend adopted a claim. */
export type ClaimAdoption =
  /** As before. */
  | 'UNSPECIFIED'
  /** It did. */
  | 'ADOPTED'
  /** It did not. */
  | 'NOT_ADOPTED'

/** What is decided about claims. */
export type ClaimDecision =
  /** Not a decision. */
  | 'UNSPECIFIED'
  /** It is hidden from results, and kept. */
  | 'REJECTED'
  /** It is shown, whatever the backend reports against it. */
  | 'RESTORED'
  /** Nobody decides: what the backend reports applies. */
  | 'CLEARED'

/** Where a claim stands. */
export type ClaimStatus =
  /** In filters: any. Never returned. */
  | 'UNSPECIFIED'
  /** Fewer than two independent sources support it. */
  | 'PENDING'
  /** At least two independent sources support it. */
  | 'VERIFIED'
  /** A person rejected it, or a dangerous pattern was found with it and nobody restored it. */
  | 'REJECTED'

/** What counts where several edges of a claim come from one source. */
export type Combining =
  /** Without updateMask: unchanged. Named in updateMask: INVALID_ARGUMENT. Never returned. */
  | 'UNSPECIFIED'
  /** Each edge. */
  | 'COUNT_ALL'
  /**
   * Of each relation the strongest edge of each source: a work by DOI, PubMed id or arXiv id, else a registrable
   * domain.
   */
  | 'ONE_PER_SOURCE'

/** Whether the query that a rating is about is known. */
export type ContextState =
  /** Never returned. */
  | 'UNSPECIFIED'
  /** Not yet: it may still be recorded, within 10 s. */
  | 'PENDING'
  /** It is known: `context` of the feedback is empty, whatever was sent. */
  | 'COMPLETE'
  /** It was not recorded in time. */
  | 'MISSING'

/** How votes are counted. */
export type Counting =
  /** Without updateMask: unchanged. Named in updateMask: INVALID_ARGUMENT. Never returned. */
  | 'UNSPECIFIED'
  /** Each voter counts once. */
  | 'DISTINCT_VOTERS'
  /** Each feedback counts if it supports the candidate that its voter supports now. */
  | 'OCCURRENCES'

/** The delivery state of an event. */
export type DeliveryState =
  /** In filters: any. Never returned. */
  | 'UNSPECIFIED'
  /** In the outbox. */
  | 'PENDING'
  /** Delivered and evaluated. */
  | 'DELIVERED'
  /** Refused permanently; see ListDeadLetters. */
  | 'DEAD_LETTER'

/** What is decided about sources. */
export type DomainDecision =
  /** Not a decision. */
  | 'UNSPECIFIED'
  /** They are not shown. */
  | 'BLOCK'
  /** They are shown, whatever blocked this pattern or one with a shorter name. */
  | 'UNBLOCK'
  /** They are trusted this far. */
  | 'SET_TRUST'
  /** No rule: the default applies again. */
  | 'CLEAR'

/** What the system found about a domain. */
export type DomainRuleCause =
  /** None: people or the trust file decided. */
  | 'UNSPECIFIED'
  /** A claim from it has a dangerous pattern, and nobody restored the claim. */
  | 'DANGEROUS_PATTERN'
  /** More of its claims are rejected than the namespace's policy allows. */
  | 'REJECTED_SHARE'
  /** A claim that it supports is supported by independent sources. */
  | 'INDEPENDENT_SUPPORT'

/** Why something was not recorded. */
export type DropReason =
  /** Nothing was dropped. */
  | 'UNSPECIFIED'
  /** More waits to be stored than fits into memory, in total or from this client. */
  | 'QUEUE_FULL'
  /** The service is stopping. */
  | 'STOPPING'

/** How the two ends of an edge are related. */
export type EdgeRelation =
  /** Not a relation. */
  | 'UNSPECIFIED'
  /** It speaks for the claim. */
  | 'SUPPORTS'
  /** It speaks against the claim. */
  | 'REFUTES'
  /** It speaks of the claim, neither for nor against it. */
  | 'NEUTRAL'
  /** One page cites another. CITES edges can't be corrected. */
  | 'CITES'

/** Who is entitled to decide by rulings. */
export type EntitledRole =
  /** Without updateMask: unchanged. Named in updateMask: INVALID_ARGUMENT. Never returned. */
  | 'UNSPECIFIED'
  /** Whoever may submit corrections. */
  | 'REPORTER'
  /** Whoever may review candidates. */
  | 'REVIEWER'
  /** Whoever may set and revert values. */
  | 'OPERATOR'
  /** Whoever may set policies. */
  | 'ADMIN'

/** What was done. */
export type EvidenceAction =
  /** In filters: any. Never returned. */
  | 'UNSPECIFIED'
  /** A correction was recorded. */
  | 'CORRECTED'
  /**
   * A correction was taken back. A retraction that decides nothing has no event: one that came before its
   * correction, whose own event says that nothing was changed, and one more of a correction that somebody of no
   * lesser right took back already.
   */
  | 'RETRACTED'
  /** A person approved a correction. */
  | 'APPROVED'
  /** A person rejected a correction. */
  | 'REJECTED'
  /** An operator set or deleted it, the trust file or the system did. */
  | 'SET'
  /** A revision was reverted. */
  | 'REVERTED'
  /** What a correction was waiting for was upserted. */
  | 'ARRIVED'
  /** What was upserted wrongly of a page, fragment, claim or edge was replaced. */
  | 'REPLACED'
  /**
   * A page, fragment, claim or edge was deleted; or, of a decision about a claim or edge: what it was about was,
   * so that it is in force no longer.
   */
  | 'DELETED'
  /** A person's approval or rejection of a correction was undone. */
  | 'UNDONE'

/** The form of exported examples. */
export type ExampleFormat =
  /** Default: CHAT. */
  | 'UNSPECIFIED'
  /**
   * {"messages": [{"role": "system"|"user"|"assistant", "content"}], "target", "promptVersion", "split"}: good
   * outputs, and the corrected text of bad ones.
   */
  | 'CHAT'
  /**
   * {"prompt", "chosen", "rejected", "target", "promptVersion", "split"}: bad outputs that were corrected; the
   * prompt as it would be sent with the input.
   */
  | 'PREFERENCE'

/** The form of exported ratings. */
export type ExportFormat =
  /** INVALID_ARGUMENT. */
  | 'UNSPECIFIED'
  /**
   * One row for each rating, with a header: what was said, and all that is known of the query. Further columns
   * come last.
   */
  | 'CSV'
  /**
   * One JSON object a line for each rating, with all that is known of the query: its texts, its best results with
   * their scores, those that were clicked, where and from which score on it searched, versions and session. The
   * type, the versions and the variant stay when the query is erased.
   */
  | 'JSONL'
  /**
   * For training: JSON objects {query, positive, negative}, a line each. Positive are the titles of results that
   * were clicked and, of a query that was rated UP and has no clicks, the best one; negative are the other
   * results of a query that was rated DOWN. One of both is null where nobody said. Each rating has its own pairs:
   * the same may come again, and where people disagree, the other way round.
   */
  | 'PAIRS'
  /**
   * TREC's judgments, `queryId 0 objectId grade` a line: grade 1 for what is positive in PAIRS, 0 for what is
   * negative.
   */
  | 'QRELS'

/** What each row counts as. */
export type ImportAs =
  /** Default: DECISION. */
  | 'UNSPECIFIED'
  /** A person's decision: applied and, where votes decide, pinned. */
  | 'DECISION'
  /** One vote each, cast by the caller. */
  | 'VOTES'

/** What an import does with bad rows. */
export type ImportMode =
  /** Default: ALL_OR_NOTHING. */
  | 'UNSPECIFIED'
  /**
   * If any row is bad, nothing is written: INVALID_ARGUMENT with the rows' errors. A row is bad also if it
   * disagrees with an earlier one: it has another value for its key. The import is one transaction; meanwhile
   * other writers wait, and after 10 s get UNAVAILABLE with RetryInfo. For large imports use SKIP_INVALID or
   * split them.
   */
  | 'ALL_OR_NOTHING'
  /**
   * Good rows are written, bad rows are reported. Of all rows of the import that disagree on a key the first is
   * written and the others are bad, however far apart they are. For that at most 80 bytes are kept of each key
   * until the import ends, in at most three quarters of learning-svc's import-buffer-size; an import of more keys
   * ends there with IMPORT_TOO_LARGE.
   */
  | 'SKIP_INVALID'

/** The language of fixed texts. */
export type Language =
  /** Default: EN. */
  | 'UNSPECIFIED'
  /** English. */
  | 'EN'
  /** Japanese. */
  | 'JA'

/** How much something to learn expects. */
export type LearningLevel =
  /** Default: BASIC. */
  | 'UNSPECIFIED'
  /** For who begins. */
  | 'BASIC'
  /** For who knows the basics. */
  | 'INTERMEDIATE'
  /** For who knows it well. */
  | 'ADVANCED'

/** Where an answer came from. */
export type MatchSource =
  /** Never returned. */
  | 'UNSPECIFIED'
  /** It was learned. */
  | 'LEARNED'

/** How near answers are found. */
export type NearMethod =
  /** Default: LEXICAL. */
  | 'UNSPECIFIED'
  /** By the words and character n-grams of the phrases. */
  | 'LEXICAL'
  /** Not at all: nodes give no near answers for the kind, whatever a caller asks for. */
  | 'OFF'

/** Whether near answers are given for a kind. */
export type NearStatus =
  /** Nobody asked. */
  | 'UNSPECIFIED'
  /** They are: where there is none, nothing that was learned is similar enough. */
  | 'READY'
  /** They are, by words alone: NEAR_LOOKUP names vectors that the answering side does not have. */
  | 'WITHOUT_VECTORS'
  /** Not yet: the first model is being made. */
  | 'FITTING'
  /** NEAR_LOOKUP says that none are. */
  | 'OFF'
  /** More was learned than models are made of. */
  | 'TOO_MANY'

/** In which state a node is that operators look for. */
export type NodeState =
  /** Any. */
  | 'UNSPECIFIED'
  /** It is behind the head. */
  | 'BEHIND'
  /** It has no open stream. */
  | 'DISCONNECTED'
  /** It rejects resources. */
  | 'REJECTING'

/** The state of a correction after learning-svc evaluated it. */
export type OutcomeState =
  /** Never returned. */
  | 'UNSPECIFIED'
  /** Stored, but not evaluated yet or below the threshold. `message` says which. */
  | 'PENDING'
  /** Nodes answer with the proposed value. */
  | 'APPLIED'
  /** A person has to decide. */
  | 'AWAITING_REVIEW'
  /** A person rejected this value before; votes do not reopen it. */
  | 'REJECTED'
  /** Evaluated but changed nothing, for example a retraction of a vote that no longer counted. */
  | 'NO_EFFECT'
  /** Cannot be learned; `reason` says why. */
  | 'REFUSED'
  /** A retraction left the value with too few supporters: from `revision` on, nodes no longer answer with it. */
  | 'WITHDRAWN'

/** What a rating counts as. */
export type RatingClass =
  /** Not given. */
  | 'UNSPECIFIED'
  /** An example to follow. */
  | 'GOOD'
  /** Neither: it replaces an earlier rating, and is never an example. */
  | 'NEUTRAL'
  /** An example to avoid. */
  | 'BAD'

/**
 * What a resource is about. Clients preserve numbers they do not know: a newer server may send kinds that an
 * older node cannot use yet.
 */
export type ResourceKind =
  /** Not a kind. INVALID_ARGUMENT wherever one kind is required. */
  | 'UNSPECIFIED'
  /** A phrase and the verb it invokes. Key: the phrase. */
  | 'INVOCATION_PHRASE'
  /** A name people use and the entity it means. Key: the alias. */
  | 'ENTITY_ALIAS'
  /** A choice that must never be offered for a phrase. Key: the phrase; qualifier: the forbidden choice. */
  | 'PROHIBITION'
  /**
   * A term and the one that it stands for. Key: the term; qualifier: the representative, as a phrase in normal
   * form. What stands for one representative is its set.
   */
  | 'SYNONYM'
  /**
   * What was decided about the sources that a pattern of domains covers. Key: the pattern, as a domain;
   * qualifier: the layer of the rule. "human": what people decided, by rulings, of which the newest of an
   * entitled person or agent is in force. "file": the trust file. "verified": what the system found in the
   * evidence. Only the system writes the latter two. How far a host is trusted is decided by the first of these
   * layers that has a rule for it; in it by the pattern with the longest name, and of two with one name by the
   * one for subdomains.
   */
  | 'DOMAIN_RULE'
  /**
   * The newest rated examples for what an AI is asked. Key: the target, for example INTERPRET, compared byte for
   * byte. Decided by a window of ratings: nobody puts, deletes, imports or reverts it (FAILED_PRECONDITION,
   * reason WINDOW); to change it, retract or redact a rating, or submit another one.
   */
  | 'FEW_SHOT_SET'
  /**
   * Whether a claim is rejected, or was restored. Key: the claim's id, compared byte for byte. Decided by
   * rulings, which take effect once the claim is known.
   */
  | 'CLAIM_STATE'
  /**
   * The label that a person gave an edge between a fragment and a claim. Key: the edge's id, compared byte for
   * byte. Decided by rulings, which take effect once the edge is known.
   */
  | 'EDGE_LABEL'
  /**
   * The prompt with which an AI is asked. Key: the target, compared byte for byte; qualifier: the label, for
   * example production (the default) or staging. Decided by review: each version has a number that is never used
   * again within its target, whatever the label, and a person says which one is current under a label.
   */
  | 'PROMPT'
  /**
   * What a user knows and wants to learn, one resource for each entry. Key: experienceYears, specialties,
   * knownTechnologies or learningGoals; qualifier: the entry, as a phrase (empty exactly for experienceYears);
   * userId is required. Decided by review by the user.
   */
  | 'PROFILE'
  /**
   * How queries of one type are searched. Key: the query type, for example HYBRID, compared byte for byte.
   * Decided by rulings of whoever sets values (by the default policy; others' await review).
   */
  | 'SEARCH_TUNING'
  /**
   * How phrases that nobody corrected are answered by what was learned for similar ones. Key: the kind that
   * phrases are looked up as, invocationPhrase or entityAlias. Decided by rulings of whoever sets values. Without
   * one the defaults apply.
   */
  | 'NEAR_LOOKUP'

/** How much harm a wrong promotion does, and therefore what a promotion requires. */
export type RiskLevel =
  /** Without updateMask: unchanged. Named in updateMask: INVALID_ARGUMENT. Never returned. */
  | 'UNSPECIFIED'
  /** Applied with the first vote (threshold 1). */
  | 'LOW'
  /** Applied at the policy's threshold of net confirmations (default 3). */
  | 'MEDIUM'
  /** Only a person can apply it. */
  | 'HIGH'

/** Who a learned value applies to. */
export type Scope =
  /** Default: GLOBAL. */
  | 'UNSPECIFIED'
  /** Everybody in the namespace. */
  | 'GLOBAL'
  /** The reporter alone; requires reporter.id. */
  | 'USER'

/** How somebody found what a search returned. */
export type SearchRatingValue =
  /** In filters: any. Otherwise INVALID_ARGUMENT. */
  | 'UNSPECIFIED'
  /** Good: +1. */
  | 'UP'
  /** Neither: 0. */
  | 'NEUTRAL'
  /** Not what was wanted: -1. */
  | 'DOWN'

/** By what ratings are told apart. */
export type StatsDimension =
  /** Never valid. */
  | 'UNSPECIFIED'
  /** The type of the query. */
  | 'QUERY_TYPE'
  /** Which model made the embeddings. */
  | 'EMBEDDING_VERSION'
  /** Which index was searched. */
  | 'INDEX_VERSION'
  /** Which variant of an experiment the user saw. */
  | 'VARIANT'

/** What a suggestion changes in a profile. */
export type SuggestionType =
  /** In filters: any. Never returned. */
  | 'UNSPECIFIED'
  /** A technology that the user knows. */
  | 'ADD_TECHNOLOGY'
  /** A specialty of the user. */
  | 'ADD_SPECIALTY'
  /** Something that the user wants to learn. */
  | 'ADD_GOAL'
  /** How many years of experience the user has. Only made when it is asked for. */
  | 'UPDATE_EXPERIENCE'

/** How a term is related to the one that it stands for. */
export type SynonymRelation =
  /** Default: EQUIVALENT. */
  | 'UNSPECIFIED'
  /** Each finds what the other finds. */
  | 'EQUIVALENT'
  /** Who searches for the term also finds the representative's set, but not the other way round. */
  | 'ONE_WAY'
  /** The term is a misspelling: it finds the representative's set, and nobody is led to it. */
  | 'TYPO'

/** How a trust file is written. */
export type TrustFileFormat =
  /** Not given: INVALID_ARGUMENT. */
  | 'UNSPECIFIED'
  /** YAML. */
  | 'YAML'
  /** TOML. */
  | 'TOML'

/** How far a source is trusted: for ranking and as a hint, never for confidence in a claim. */
export type TrustLevel =
  /** None was given. */
  | 'UNSPECIFIED'
  /** The original source. Weight 1.0. */
  | 'PRIMARY'
  /** A government's. Weight 0.95. */
  | 'GOVERNMENT'
  /** Universities, journals, preprint servers. Weight 0.90. */
  | 'ACADEMIC'
  /** Known to be careful. Weight 0.75. */
  | 'TRUSTED'
  /** Known to be careless. Weight 0.40. */
  | 'LOW'
  /** Nothing is known of it: the default. Weight 0.30. */
  | 'UNVERIFIED'
  /** Not to be shown. Weight 0.0. Only an answer: a source is blocked by a decision of its own. */
  | 'BLOCKED'

/** What the evidence says of a claim. */
export type Verdict =
  /** Never returned. */
  | 'UNSPECIFIED'
  /** confidence − uncertainty > 0.5. */
  | 'SUPPORTED'
  /** confidence + uncertainty < 0.5. */
  | 'REFUTED'
  /** Neither. */
  | 'INCONCLUSIVE'

/** When SubmitFeedback and RetractFeedback return. */
export type Wait =
  /** Default: RECORDED. */
  | 'UNSPECIFIED'
  /** As soon as it is stored. */
  | 'RECORDED'
  /** After evaluation, or with outcome PENDING after min(the caller's deadline − 100 ms, 2 s). */
  | 'EVALUATED'

/** The calls that a service answers, by name. */
export interface Methods {
  /** Returns who the caller is and what it may do in a namespace. */
  'emend.access.v1.AccessService/GetAccess': { request: GetAccessRequest; response: GetAccessResponse }
  /**
   * Stores one correction. OK means it is durable. Errors: INVALID_ARGUMENT with every violated field;
   * ALREADY_EXISTS (REQUEST_ID_REUSED) for a requestId already used with different content; RESOURCE_EXHAUSTED or
   * UNAVAILABLE with RetryInfo under overload.
   */
  'emend.feedback.v1.FeedbackService/SubmitFeedback': { request: SubmitFeedbackRequest; response: SubmitFeedbackResponse }
  /** Stores up to 100 corrections. Each item has its own status; the call is OK if any item could be attempted. */
  'emend.feedback.v1.FeedbackService/BatchSubmitFeedback': { request: BatchSubmitFeedbackRequest; response: BatchSubmitFeedbackResponse }
  /**
   * Returns one feedback item with its outcome and what has become of it since. NOT_FOUND if it does not exist in
   * that namespace.
   */
  'emend.feedback.v1.FeedbackService/GetFeedback': { request: GetFeedbackRequest; response: GetFeedbackResponse }
  /** Lists the feedback of a namespace, newest first, each with its outcome and what has become of it since. */
  'emend.feedback.v1.FeedbackService/ListFeedback': { request: ListFeedbackRequest; response: ListFeedbackResponse }
  /**
   * Retracts a correction: its vote no longer counts, even if learning-svc has not seen it yet. Idempotent: a
   * second retraction returns the same answer as the first. Where rulings decide, one by a stronger role counts
   * once more: it takes back what a weaker one could not.
   */
  'emend.feedback.v1.FeedbackService/RetractFeedback': { request: RetractFeedbackRequest; response: RetractFeedbackResponse }
  /**
   * Sets the labels of a rating of a search answer: its tags, and whether somebody has dealt with it.
   * FAILED_PRECONDITION (NOT_A_SEARCH_RATING) for other feedback. Idempotent.
   */
  'emend.feedback.v1.FeedbackService/UpdateFeedbackLabels': { request: UpdateFeedbackLabelsRequest; response: UpdateFeedbackLabelsResponse }
  /**
   * Erases the personal parts of one feedback item everywhere: reporter, session, client, client key, query id,
   * reason, context and retract reason, in both services. The correction, the vote and its outcome stay.
   * Idempotent.
   */
  'emend.feedback.v1.FeedbackService/RedactFeedback': { request: RedactFeedbackRequest; response: RedactFeedbackResponse }
  /**
   * Erases everything about one reporter in a namespace: redacts all feedback stored until now with that reporter
   * id, and deletes the resources learned for that user alone, by a revision. What was stored is erased in
   * batches: the call returns once the first is done at the latest after the caller's deadline − 100 ms or 10 s,
   * and a worker finishes the rest. Idempotent: call again to see what remains.
   */
  'emend.feedback.v1.FeedbackService/RedactReporter': { request: RedactReporterRequest; response: RedactReporterResponse }
  /** Lists the events that learning-svc refused permanently, oldest first. */
  'emend.feedback.v1.FeedbackService/ListDeadLetters': { request: ListDeadLettersRequest; response: ListDeadLettersResponse }
  /** Makes dead letters due for delivery again. */
  'emend.feedback.v1.FeedbackService/RedriveDeadLetters': { request: RedriveDeadLettersRequest; response: RedriveDeadLettersResponse }
  /**
   * Records queries. Answers at once, whatever the database does: they wait in memory and are stored soon after,
   * at most 250 ms later where the database keeps up. What finds no place is dropped, and the answer says how
   * many. Repeating a query is safe: the first of its id counts. Errors: INVALID_ARGUMENT with every violated
   * field, and then nothing is recorded.
   */
  'emend.feedback.v1.QueryService/RecordQuery': { request: RecordQueryRequest; response: RecordQueryResponse }
  /** Records what users did with results, in the same way. Of equal interactions with one query the first counts. */
  'emend.feedback.v1.QueryService/RecordInteraction': { request: RecordInteractionRequest; response: RecordInteractionResponse }
  /** Lists the recorded queries of a namespace, newest first, each with its interactions. */
  'emend.feedback.v1.QueryService/ListQueries': { request: ListQueriesRequest; response: ListQueriesResponse }
  /**
   * How many ratings of search answers are negative, and how many queries found nothing: by week, type of query,
   * version and variant, with confidence intervals; and whether two versions or variants differ by more than
   * chance. Of queries that are still kept also what was searched most, and how often results were clicked.
   * Ratings that were replaced or retracted do not count.
   */
  'emend.feedback.v1.QueryService/GetFeedbackStats': { request: GetFeedbackStatsRequest; response: GetFeedbackStatsResponse }
  /**
   * Lists the words that stand out in queries whose results were rated -1, against all queries (TF-IDF): where
   * synonyms may be missing. Function words of English and Japanese are left out.
   */
  'emend.feedback.v1.QueryService/ListNegativeTerms': { request: ListNegativeTermsRequest; response: ListNegativeTermsResponse }
  /**
   * Exports the ratings of search answers that count, newest first, with what is known of their queries: those
   * that a newer one replaces and those that were retracted are left out.
   */
  'emend.feedback.v1.QueryService/ExportFeedback': { request: ExportFeedbackRequest; response: ExportFeedbackResponse }
  /** Returns the settings in force: the defaults (version 0) if none were set. */
  'emend.feedback.v1.SettingsService/GetSettings': { request: GetSettingsRequest; response: GetSettingsResponse }
  /** Changes settings. They are in force at once; workers follow within a minute. */
  'emend.feedback.v1.SettingsService/UpdateSettings': { request: UpdateSettingsRequest; response: UpdateSettingsResponse }
  /** Returns one resource. NOT_FOUND if it does not exist. */
  'emend.learning.v1.ResourceService/GetResource': { request: GetResourceRequest; response: GetResourceResponse }
  /** Lists the resources of a namespace in key order. */
  'emend.learning.v1.ResourceService/ListResources': { request: ListResourcesRequest; response: ListResourcesResponse }
  /**
   * Sets a value as a person's decision and pins its contest; where rulings decide it is a ruling of now and pins
   * nothing, and the answer has the value that applies then. FAILED_PRECONDITION, reason WINDOW, for what ratings
   * decide, also where it is deleted, imported or reverted: retract or redact a rating instead. INVALID_ARGUMENT,
   * also where it is deleted, for rules of domains in the layers "file" and "verified", which only the system
   * writes.
   */
  'emend.learning.v1.ResourceService/PutResource': { request: PutResourceRequest; response: PutResourceResponse }
  /**
   * Deletes a value. Only a person can bring the same value back; another value may still be learned. Where
   * rulings decide it is a ruling of now that nothing applies.
   */
  'emend.learning.v1.ResourceService/DeleteResource': { request: DeleteResourceRequest; response: DeleteResourceResponse }
  /**
   * Imports many rows: a header first, then rows. A server accepts 2 imports at a time; further ones get
   * RESOURCE_EXHAUSTED with RetryInfo. A sender that is silent for 60 s gets ABORTED, and nothing is imported.
   */
  'emend.learning.v1.ResourceService/ImportResources': { request: ImportResourcesRequest; response: ImportResourcesResponse }
  /** Lists the audit trail: revisions, newest first. */
  'emend.learning.v1.ResourceService/ListRevisions': { request: ListRevisionsRequest; response: ListRevisionsResponse }
  /**
   * Restores the state before a revision, as a new revision. FAILED_PRECONDITION lists every key that a newer
   * revision has changed. FAILED_PRECONDITION, reason SYSTEM_LAYER, for a revision that changed rules of domains
   * in the layers "file" or "verified". Or restores the state before a whole operation, such as an import:
   * revision by revision, each as a new one. What can't be reverted, because it was changed since or for another
   * reason, is left as it is and reported. If the call ends early, what is reverted stays so; repeat it.
   */
  'emend.learning.v1.ResourceService/RevertRevision': { request: RevertRevisionRequest; response: RevertRevisionResponse }
  /** Returns what a node answers for a phrase: the learned value and the prohibited choices. */
  'emend.learning.v1.ResourceService/Resolve': { request: ResolveRequest; response: ResolveResponse }
  /** Lists the candidates of a namespace, newest first unless another order is asked for. */
  'emend.learning.v1.CandidateService/ListCandidates': { request: ListCandidatesRequest; response: ListCandidatesResponse }
  /** Returns one candidate with its votes, rivals, feedback and history. */
  'emend.learning.v1.CandidateService/GetCandidate': { request: GetCandidateRequest; response: GetCandidateResponse }
  /**
   * Applies a candidate, as proposed or edited, and pins its contest. Where the policy needs two reviewers, the
   * first approval only leaves it AWAITING_REVIEW with the reason SECOND_REVIEWER, revision 0, and that of
   * another authenticated caller of the same value decides; FAILED_PRECONDITION with the reason SECOND_REVIEWER
   * if the caller approved it before, and with AUTHENTICATION_NEEDED if callers are not authenticated. A ruling
   * becomes effective at its own accept order instead: a newer one stays in force, and the candidate is then
   * SUPERSEDED. FAILED_PRECONDITION if it is already applied or effective, or a ruling that was rejected or taken
   * back; ABORTED if the etag no longer matches.
   */
  'emend.learning.v1.CandidateService/ApproveCandidate': { request: ApproveCandidateRequest; response: ApproveCandidateResponse }
  /**
   * Rejects a candidate permanently: votes do not reopen it. If its value is applied, the value is removed; where
   * rulings decide, the newest effective one before it is in force again. FAILED_PRECONDITION if it is already
   * rejected; ABORTED if the etag no longer matches.
   */
  'emend.learning.v1.CandidateService/RejectCandidate': { request: RejectCandidateRequest; response: RejectCandidateResponse }
  /** Approves up to 100 candidates, each with its own status. */
  'emend.learning.v1.CandidateService/BatchApproveCandidates': { request: BatchApproveCandidatesRequest; response: BatchApproveCandidatesResponse }
  /** Rejects up to 100 candidates, each with its own status. */
  'emend.learning.v1.CandidateService/BatchRejectCandidates': { request: BatchRejectCandidatesRequest; response: BatchRejectCandidatesResponse }
  /**
   * Undoes a person's approval or rejection: status, hold, pin and value are as before it, and votes that came
   * since count. An edited candidate that the approval made is withdrawn. An approved prompt awaits review again,
   * and the version before it is current. Only its maker (the same caller and onBehalfOf) or an operator may,
   * within 10 minutes by the database's clock, and while nothing else in the contest was decided since.
   * FAILED_PRECONDITION with the reason NOTHING_TO_UNDO: no person's decision on this candidate is in force;
   * NOT_THE_LAST_DECISION: the contest has changed since; TOO_LATE_TO_UNDO: more than 10 minutes have passed.
   * PERMISSION_DENIED with the reason NOT_THE_DECIDER: somebody else decided, and the caller is no operator.
   * ABORTED if the etag no longer matches.
   */
  'emend.learning.v1.CandidateService/UndoDecision': { request: UndoDecisionRequest; response: UndoDecisionResponse }
  /**
   * Shows others for 60 s, by the database's clock, that somebody has a candidate open. Sent again by the same
   * caller and onBehalfOf, it renews the lease. It never prevents anybody from deciding. RESOURCE_EXHAUSTED
   * (LEASES_FULL) if 5,000 are held already.
   */
  'emend.learning.v1.CandidateService/AcquireReviewLease': { request: AcquireReviewLeaseRequest; response: AcquireReviewLeaseResponse }
  /** Ends one's own lease. Of a candidate that somebody else has open, or nobody, nothing changes. */
  'emend.learning.v1.CandidateService/ReleaseReviewLease': { request: ReleaseReviewLeaseRequest; response: ReleaseReviewLeaseResponse }
  /**
   * Asks another reviewer about a candidate that is AWAITING_REVIEW, with a comment. Whoever is asked, or anybody
   * if nobody is named, answers with a comment or decides. FAILED_PRECONDITION (NOT_WAITING) of other candidates;
   * RESOURCE_EXHAUSTED (COMMENTS_FULL) if it has 200 comments.
   */
  'emend.learning.v1.CandidateService/AskSecondOpinion': { request: AskSecondOpinionRequest; response: AskSecondOpinionResponse }
  /**
   * Comments on a candidate. By whoever was asked for a second opinion, or by anybody else than the asker if
   * nobody was named, it is the answer. RESOURCE_EXHAUSTED (COMMENTS_FULL) if the candidate has 200 comments.
   */
  'emend.learning.v1.CandidateService/CommentOnCandidate': { request: CommentOnCandidateRequest; response: CommentOnCandidateResponse }
  /**
   * Sends what changes in the queue from now on, whichever replica changed it, in the order in which it was
   * committed. Sends `opened` first: load the page after it, and miss nothing. A change may be sent again after
   * it was seen in a page. Ends with OK when the replica stops, and with UNAVAILABLE (TOO_MANY_WATCHES) at once
   * if it has 1,000 watches: open another.
   */
  'emend.learning.v1.CandidateService/WatchQueue': { request: WatchQueueRequest; response: WatchQueueResponse }
  /** Counts what was received and decided, per UTC day and kind, and what waits for a person now. */
  'emend.learning.v1.CandidateService/GetQueueStats': { request: GetQueueStatsRequest; response: GetQueueStatsResponse }
  /**
   * Which of these queries would be answered differently if the candidate were applied, exactly or near. Changes
   * nothing. For kinds that phrases are looked up as, and PROHIBITION: others INVALID_ARGUMENT.
   */
  'emend.learning.v1.CandidateService/PreviewCandidate': { request: PreviewCandidateRequest; response: PreviewCandidateResponse }
  /**
   * Adds nodes and edges, or replaces what is known of them. Idempotent. All or nothing. Corrections that were
   * waiting for one of them take effect before the answer. What a person corrected stays corrected: an upsert
   * renews the model's prediction only. Needs the role evidence-writer.
   */
  'emend.learning.v1.EvidenceService/UpsertEvidence': { request: UpsertEvidenceRequest; response: UpsertEvidenceResponse }
  /**
   * Deletes nodes and edges with what hangs on them: a page with its fragments, and what is deleted with all its
   * edges. A claim that was found on a deleted page stays, without a page. Each deletion is an event. Done in
   * steps of 500, edges first, each of which is a transaction: after a failure, send the request again.
   * Idempotent: what is not known is not deleted. What people decided about a deleted claim or edge is no longer
   * in force, and waits (TARGET_NOT_FOUND) for one of the same id.
   */
  'emend.learning.v1.EvidenceService/DeleteEvidence': { request: DeleteEvidenceRequest; response: DeleteEvidenceResponse }
  /** Returns one claim with its confidence. NOT_FOUND if it was never upserted. */
  'emend.learning.v1.EvidenceService/GetClaim': { request: GetClaimRequest; response: GetClaimResponse }
  /**
   * Lists claims with their confidence: those of a task or status in the order in which they were first upserted,
   * otherwise by id.
   */
  'emend.learning.v1.EvidenceService/ListClaims': { request: ListClaimsRequest; response: ListClaimsResponse }
  /**
   * Lists edges, or one by its id: those of a claim or task in the order in which they were first upserted, else
   * those of levels by the source's domain, else those that were reviewed by when that was, else by id.
   */
  'emend.learning.v1.EvidenceService/ListEdges': { request: ListEdgesRequest; response: ListEdgesResponse }
  /** Lists decisions about domains, active and ended, the newest first. */
  'emend.learning.v1.EvidenceService/ListDomainRules': { request: ListDomainRulesRequest; response: ListDomainRulesResponse }
  /** Lists the domains that are blocked now, whoever blocked them, the newest decision first. */
  'emend.learning.v1.EvidenceService/ListBlockedDomains': { request: ListBlockedDomainsRequest; response: ListBlockedDomainsResponse }
  /**
   * Lists what was done to domains, claims and edges, also what had no effect: the newest first, by their ids
   * where a target or task is given, else by time.
   */
  'emend.learning.v1.EvidenceService/ListEvidenceEvents': { request: ListEvidenceEventsRequest; response: ListEvidenceEventsResponse }
  /** Counts reviewed and corrected edges: how often the model was wrong. */
  'emend.learning.v1.EvidenceService/GetReviewStats': { request: GetReviewStatsRequest; response: GetReviewStatsResponse }
  /**
   * Streams everything about one task as one consistent state: claims with confidence, edges with the levels at
   * both ends. A replica makes two exports at once; further ones are refused with RESOURCE_EXHAUSTED, reason
   * EXPORTS_BUSY.
   */
  'emend.learning.v1.EvidenceService/ExportMaterials': { request: ExportMaterialsRequest; response: ExportMaterialsResponse }
  /**
   * Streams the correction samples: what the model said, and what a person says is right. One consistent state,
   * bounded like ExportMaterials. Redactions erase reason and reporter of a sample, and not its texts, which are
   * the backend's.
   */
  'emend.learning.v1.EvidenceService/ExportCorrections': { request: ExportCorrectionsRequest; response: ExportCorrectionsResponse }
  /**
   * Ranks papers related to a paper; the best become pages that the paper's page is joined to by CITES edges.
   * Needs the role evidence-writer.
   */
  'emend.learning.v1.EvidenceService/RankCitations': { request: RankCitationsRequest; response: RankCitationsResponse }
  /**
   * Applies a trust file as one operation: rules of the layer "file"; those that the file does not name end. In a
   * namespace where its version or a newer one is in force it does nothing. A file with an error changes nothing
   * anywhere. Each namespace is one transaction: after a failure, send the file again.
   */
  'emend.learning.v1.EvidenceService/ApplyTrustFile': { request: ApplyTrustFileRequest; response: ApplyTrustFileResponse }
  /**
   * Returns the prompt of a target as a node would send it: its text with variables filled in, the examples, and
   * the profile of a user where one is named. Without examples and profile it is the text byte for byte.
   * NOT_FOUND if no version is current.
   */
  'emend.learning.v1.OutputService/RenderPrompt': { request: RenderPromptRequest; response: RenderPromptResponse }
  /** Counts the ratings of a target by version of its prompt, and says whether an improvement can be generated. */
  'emend.learning.v1.OutputService/GetOutputStats': { request: GetOutputStatsRequest; response: GetOutputStatsResponse }
  /** The same of every target of a namespace that was rated or has a prompt, in the order of their names. */
  'emend.learning.v1.OutputService/ListOutputStats': { request: ListOutputStatsRequest; response: ListOutputStatsResponse }
  /** Lists all versions of a prompt that were ever put or proposed, the newest first. */
  'emend.learning.v1.OutputService/ListPromptVersions': { request: ListPromptVersionsRequest; response: ListPromptVersionsResponse }
  /** Shows what a proposed version would change on inputs that were rated. Changes nothing. */
  'emend.learning.v1.OutputService/PreviewImprovement': { request: PreviewImprovementRequest; response: PreviewImprovementResponse }
  /**
   * Generates a better prompt from the ratings of the current version, and from all since it was made current; it
   * then awaits review. These stay counted when what was proposed is rejected or superseded. FAILED_PRECONDITION:
   * too few bad ratings (reason TOO_FEW_RATINGS, says how many are missing), no current version (NO_PROMPT), or
   * an improvement of the target is open or being generated already (IMPROVEMENT_OPEN), the ratings have neither
   * issues nor corrected texts (NOTHING_SAID), or the prompt has no room for guidelines (PROMPT_FULL), or the
   * generator refuses what it is asked (GENERATOR_REFUSED). ABORTED: the prompt changed meanwhile. UNAVAILABLE:
   * the generator failed (GENERATOR_UNAVAILABLE, GENERATOR_BAD_ANSWER); nothing is stored.
   */
  'emend.learning.v1.OutputService/GenerateImprovement': { request: GenerateImprovementRequest; response: GenerateImprovementResponse }
  /**
   * Makes a version current under a label that was approved before, under any label of the target. Closes what is
   * proposed for that label. FAILED_PRECONDITION if it was never approved, or is current there already.
   */
  'emend.learning.v1.OutputService/UsePromptVersion': { request: UsePromptVersionRequest; response: UsePromptVersionResponse }
  /**
   * Streams rated outputs for training, one JSON object in each message, the oldest first. Each output once, by
   * the class that its live ratings give it: see FewShotExample.
   */
  'emend.learning.v1.OutputService/ExportExamples': { request: ExportExamplesRequest; response: ExportExamplesResponse }
  /** Returns the policy in force: the default (version 0) if none was set. */
  'emend.learning.v1.PolicyService/GetPolicy': { request: GetPolicyRequest; response: GetPolicyResponse }
  /** Changes a policy and returns at once; pending candidates are re-evaluated in the background. */
  'emend.learning.v1.PolicyService/UpdatePolicy': { request: UpdatePolicyRequest; response: UpdatePolicyResponse }
  /**
   * What a change of a policy would apply at once, and which of these queries would then be answered differently,
   * exactly or near. Changes nothing. For kinds that phrases are looked up as, and PROHIBITION: others
   * INVALID_ARGUMENT.
   */
  'emend.learning.v1.PolicyService/PreviewPolicy': { request: PreviewPolicyRequest; response: PreviewPolicyResponse }
  /** Returns the policy of a namespace as a whole in force: the default (version 0) if none was set. */
  'emend.learning.v1.PolicyService/GetNamespacePolicy': { request: GetNamespacePolicyRequest; response: GetNamespacePolicyResponse }
  /** Changes the policy of a namespace and returns at once; its domains are verified anew in the background. */
  'emend.learning.v1.PolicyService/UpdateNamespacePolicy': { request: UpdateNamespacePolicyRequest; response: UpdateNamespacePolicyResponse }
  /** Returns the profile of a user; an empty one if nothing is known. */
  'emend.learning.v1.ProfileService/GetProfile': { request: GetProfileRequest; response: GetProfileResponse }
  /** Changes a profile as its user's own decision, in one revision. */
  'emend.learning.v1.ProfileService/UpdateProfile': { request: UpdateProfileRequest; response: UpdateProfileResponse }
  /**
   * Stores what a user did, from which suggestions can be made. An activity with a known sourceType and sourceId
   * is kept as it is. The newest 10,000 of a user are kept, until the user is erased. Personal data in a summary
   * is masked; technologies, topics and goals that have any are left out.
   */
  'emend.learning.v1.ProfileService/RecordActivity': { request: RecordActivityRequest; response: RecordActivityResponse }
  /**
   * Suggests entries from what a user did. Not suggested: what the profile has or had, what waits, and what was
   * rejected; once years of experience were rejected, none are suggested again. UNAVAILABLE if the generator
   * can't be asked (GENERATOR_UNAVAILABLE) or answers nothing that can be read (GENERATOR_BAD_ANSWER).
   * FAILED_PRECONDITION if it refuses what it is asked (GENERATOR_REFUSED).
   */
  'emend.learning.v1.ProfileService/GenerateSuggestions': { request: GenerateSuggestionsRequest; response: GenerateSuggestionsResponse }
  /** Lists the suggestions for a user, the newest first. */
  'emend.learning.v1.ProfileService/ListSuggestions': { request: ListSuggestionsRequest; response: ListSuggestionsResponse }
  /**
   * Adds what is suggested to the profile. FAILED_PRECONDITION if it was accepted or rejected before; ABORTED if
   * the user has changed the entry since it was suggested.
   */
  'emend.learning.v1.ProfileService/AcceptSuggestion': { request: AcceptSuggestionRequest; response: AcceptSuggestionResponse }
  /**
   * Turns a suggestion down for good: it is not made again. The user may still add the entry. FAILED_PRECONDITION
   * if it was accepted or rejected before.
   */
  'emend.learning.v1.ProfileService/RejectSuggestion': { request: RejectSuggestionRequest; response: RejectSuggestionResponse }
  /**
   * Orders what there is to learn by a user's profile: first what is about one of the user's goals, then the
   * rest, each in the order given. Left out are the basics of what the user knows: basic items all of whose
   * topics are known technologies or specialties, and none a goal.
   */
  'emend.learning.v1.ProfileService/RankLearnings': { request: RankLearningsRequest; response: RankLearningsResponse }
  /** Lists the whole fleet as last reported, from any replica, ordered by node id. */
  'emend.learning.v1.SubscriptionService/ListNodes': { request: ListNodesRequest; response: ListNodesResponse }
}
