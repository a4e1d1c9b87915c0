import {
  AT_NEXT_REBOOT,
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  type MachineConfigNodeStatus,
  MOST_CHANGED_PATHS,
  NOT_YET,
  type NodeConditionType,
  PREPARE_FAILED,
  PREPARE_REFUSED,
  ROLLING_BACK,
  type UpdatePlan,
} from '../api/machine-config-node.ts';
import { SHALE_VERSION } from '../api/names.ts';
import { certificateNames } from '../api/node-certificates.ts';
import { type Condition, LONGEST_MESSAGE, toSeconds } from '../api/object.ts';
import { present } from '../api/present.ts';
import { nodeReadiness } from '../cluster/node-readiness.ts';
import { setReadiness } from '../cluster/readiness.ts';
import { setCondition } from '../cluster/update-object.ts';
import type { Drift } from './content/drift/drift.ts';
import { rebootWords } from './reboot/reboot-words.ts';
import type { NodeReport, Phase } from './steps/phase.ts';

type NodeCondition = Omit<Condition, 'lastTransitionTime'> & { readonly type: NodeConditionType };

/** Longest list of causes that a status may hold (api/machine-config-node.ts); the image's label has them all. */
const MOST_CAUSES = 50;
/** No update is under way, or it has not come to this. */
const NOT_AT_THIS_STAGE = 'No update is at this stage';

/**
 * The status that tells what a node is and does.
 *
 * @param object the MachineConfigNode as it is now; fields and conditions that others maintain stay.
 * @param now when it is so: the time of conditions that change.
 */
export function statusOf(object: MachineConfigNode, report: NodeReport, now: Date): MachineConfigNodeStatus {
  const { spec, status: before = {} } = object;
  const { phase } = report;
  // Of the spec that the daemon has looked at: it may have changed since.
  const generation = report.generation ?? object.metadata.generation;
  const verification = phase.kind === 'verifying' ? verificationOf(phase, before, now) : undefined;
  const others = [...certificateConditions(spec, report), ...imagePolicyConditions(report, before)];
  return present({
    ...before,
    conditions: conditionsOf({ phase, others, generation, verification }, before.conditions ?? [], now),
    ...runningOf(spec, report),
    ...updateOf(report),
    observedGeneration: generation,
    verification,
    changedByHand: changedIn(phase, before),
  });
}

/** What the node runs. */
function runningOf(
  { configVersion, configImage }: MachineConfigNodeSpec,
  { current, bootID, bootedImage, certificates, osBackend: tool }: NodeReport,
) {
  const currentImage = current?.mode === 'Layered' ? current.image : undefined;
  const images = present({ currentImage, desiredImage: configImage?.desiredImage });
  const { versionUnknown: _, ...osBackend } = tool;
  return {
    configVersion: { current: current?.config ?? '', desired: configVersion.desired },
    bootID,
    osBackend,
    daemonVersion: SHALE_VERSION,
    configImage: hasFields(images) ? images : undefined,
    mode: current?.mode,
    baseImage: current === undefined ? bootedImage : current.baseImage,
    certificates: hasFields(certificates) ? certificates : undefined,
  };
}

function hasFields(object: object): boolean {
  return Object.keys(object).length > 0;
}

/** What the node does, and did last. */
function updateOf({ phase, lastUpdate, lastRepair }: NodeReport) {
  const plan = planOf(phase);
  return {
    plan: plan && { ...plan, causes: plan.causes.slice(0, MOST_CAUSES) },
    staging: phase.kind === 'preparing' ? phase.staging : undefined,
    lastUpdate: lastUpdate && { ...lastUpdate, causes: lastUpdate.causes.slice(0, MOST_CAUSES) },
    lastRepair,
  };
}

/** A failure is over once another target is on the disk (conditionsOf), and so is what it was about. */
function changedIn(
  phase: Phase,
  { changedByHand: known, conditions = [] }: MachineConfigNodeStatus,
): MachineConfigNodeStatus['changedByHand'] {
  if ('byHand' in phase && phase.byHand !== undefined) return changedByHand(phase.byHand);
  const isKept = phase.kind === 'preparing' || phase.kind === 'held';
  const degraded = conditions.find(({ type }) => type === 'NodeDegraded');
  return isKept && degraded?.status === 'True' && degraded.reason === 'ConfigDrift' ? known : undefined;
}

/** @param byHand paths that somebody has changed. @returns them as a status names them. */
export function changedByHand(
  byHand: readonly Drift[],
): NonNullable<MachineConfigNodeStatus['changedByHand']> {
  const named = byHand.slice(0, MOST_CHANGED_PATHS);
  return { count: byHand.length, paths: named.map(({ path, message }) => ({ path, message })) };
}

type Verification = NonNullable<MachineConfigNodeStatus['verification']>;

/** ms by which a deadline that is computed again may differ: it is the same one, and no reason to write. */
const DEADLINE_JITTER_MS = 5_000;

function verificationOf(
  { doing, failed, leftMs }: Phase & { kind: 'verifying' },
  { verification: before }: MachineConfigNodeStatus,
  now: Date,
): Verification {
  const end = leftMs === undefined ? undefined : now.getTime() + leftMs;
  const isKnown =
    end !== undefined && Math.abs(Date.parse(before?.deadline ?? '') - end) <= DEADLINE_JITTER_MS;
  const deadline = isKnown ? before?.deadline : end === undefined ? undefined : toSeconds(new Date(end));
  return {
    waitsFor: doing.slice(0, LONGEST_MESSAGE),
    ...present({ check: failed?.check, output: failed?.output.slice(0, LONGEST_MESSAGE), deadline }),
  };
}

function planOf(phase: Phase): UpdatePlan | undefined {
  return 'plan' in phase ? phase.plan : undefined;
}

function conditionsOf(
  {
    phase,
    others,
    generation,
    verification,
  }: {
    readonly phase: Phase;
    readonly others: readonly NodeCondition[];
    readonly generation: number | undefined;
    readonly verification: Verification | undefined;
  },
  before: readonly Condition[],
  now: Date,
): Condition[] {
  let conditions = [...before];
  const about = { observedGeneration: generation };
  for (const each of [...conditionsOfPhase(phase, verification?.deadline), ...others])
    conditions = setCondition(conditions, { ...each, ...about }, now);
  // A failure is over once another target is on the disk, not when it is merely requested.
  if (
    (phase.kind !== 'preparing' && phase.kind !== 'held') ||
    conditions.every(({ type }) => type !== 'NodeDegraded')
  ) {
    conditions = setCondition(conditions, { ...degradedOf(phase), ...about }, now);
  }
  return setReadiness(conditions, nodeReadiness(conditions), generation, now);
}

/** Certificates are no part of an update, and what keeps them from the node does not degrade it. */
function certificateConditions(
  { certificates: desired = {} }: MachineConfigNodeSpec,
  { certificates, withheld }: NodeReport,
): NodeCondition[] {
  const named = certificateNames.filter((name) => desired[name] !== undefined);
  if (named.length === 0) return [];
  const missing = named.filter((name) => desired[name] !== certificates[name]);
  if (missing.length === 0)
    return [condition('CertificatesApplied', 'True', 'Applied', `Applied ${named.join(', ')}`)];
  const known = missing.flatMap((name) => withheld.get(name) ?? []);
  const why = known.map((each) => each.why).join('; ');
  return [
    condition(
      'CertificatesApplied',
      'False',
      known[0]?.reason ?? 'Applying',
      why || `Applying ${missing.join(', ')}`,
    ),
  ];
}

/** Shale verifies each image itself; this is about what else pulls on the host. */
function imagePolicyConditions(
  { imagePolicy }: NodeReport,
  { conditions = [] }: MachineConfigNodeStatus,
): NodeCondition[] {
  const verdict = (status: NodeCondition['status'], reason: string, message: string) => [
    condition('SignaturePolicyApplied', status, reason, message),
  ];
  switch (imagePolicy?.kind) {
    case undefined:
      return [];
    case 'not-required':
      return conditions.some(({ type }) => type === 'SignaturePolicyApplied')
        ? verdict('False', 'NotRequired', 'No tool of the host has to verify the images of the pool')
        : [];
    case 'applied':
      return verdict(
        'True',
        'Applied',
        `The host's tools take only signed images from ${imagePolicy.repositories.join(' and ')}`,
      );
    case 'incomplete':
      return verdict('False', imagePolicy.reason, `Shale alone verifies images: ${imagePolicy.why}`);
  }
}

function degradedOf(phase: Phase): NodeCondition {
  switch (phase.kind) {
    case 'degraded':
    case 'rollingBack':
    case 'drifted':
      return condition('NodeDegraded', 'True', phase.reason, phase.why);
    default:
      return condition(
        'NodeDegraded',
        'False',
        'AsExpected',
        'Nothing prevents the node from reaching its target',
      );
  }
}

/** MCO's v1 conditions of an update (openshift/api, machineconfiguration/v1 MachineConfigNode), in their order. */
function conditionsOfPhase(phase: Phase, deadline?: string): NodeCondition[] {
  const not = (...types: readonly NodeConditionType[]) =>
    types.map((type) => condition(type, 'False', NOT_YET, NOT_AT_THIS_STAGE));
  const inOrder = (...each: readonly NodeCondition[]) => {
    const named = new Set(each.map(({ type }) => type));
    return [...each, ...not(...STAGES.filter((type) => !named.has(type)))];
  };
  switch (phase.kind) {
    case 'updated':
      return inOrder(condition('Updated', 'True', 'Updated', 'The node runs its target'));
    case 'preparing':
      return inOrder(
        phase.problem === undefined
          ? condition('UpdatePrepared', 'False', 'Preparing', 'Staging the target')
          : condition(
              'UpdatePrepared',
              'False',
              phase.refused === true ? PREPARE_REFUSED : PREPARE_FAILED,
              phase.problem,
            ),
      );
    case 'held':
      return inOrder(condition('UpdatePrepared', 'False', 'NodeHeld', `Not staged: ${phase.why}`));
    case 'waiting':
      return inOrder(condition('UpdatePrepared', 'True', 'Prepared', phase.why), ...pulled(phase.plan));
    case 'armed':
      // Nothing of the running system has changed: an update is not under way.
      return inOrder(
        condition('UpdatePrepared', 'True', AT_NEXT_REBOOT, "Staged; applies at the node's next reboot"),
        ...pulled(phase.plan),
      );
    case 'applying':
      return inOrder(
        GRANTED,
        ...pulled(phase.plan),
        condition('UpdateExecuted', 'Unknown', 'Applying', phase.doing),
        condition('AppliedFiles', 'Unknown', 'Applying', phase.doing),
      );
    case 'rebooting':
      return inOrder(
        ...applied(phase.plan),
        condition('RebootedNode', 'Unknown', 'Rebooting', rebootWords(phase.plan).rebooting),
      );
    case 'verifying':
      return inOrder(
        ...applied(phase.plan),
        condition('RebootedNode', 'True', 'Rebooted', rebootWords(phase.plan).rebooted),
        condition('UpdatePostActionComplete', 'Unknown', 'HealthChecks', withDeadline(phase.doing, deadline)),
      );
    case 'rollingBack':
      return inOrder(
        ...applied(phase.plan),
        condition('RebootedNode', 'Unknown', ROLLING_BACK, 'Rolling back to what ran before'),
        condition('UpdatePostActionComplete', 'False', phase.reason, phase.why),
      );
    case 'drifted':
      return inOrder(condition('Updated', 'False', phase.reason, phase.why));
    case 'degraded':
      return inOrder();
  }
}

function applied(plan: UpdatePlan): NodeCondition[] {
  return [
    GRANTED,
    ...pulled(plan),
    condition('UpdateExecuted', 'True', 'Applied', 'The target is staged as the next boot'),
    condition('AppliedFiles', 'True', 'Applied', 'The files of the next boot are written'),
    condition('AppliedOSImage', 'True', 'Applied', 'The OS image of the next boot is staged'),
  ];
}

function withDeadline(doing: string, deadline: string | undefined): string {
  return deadline === undefined ? doing : `${doing}; until ${deadline} at the latest`;
}

function pulled({ image }: UpdatePlan): NodeCondition[] {
  return image === undefined ? [] : [condition('ImagePulledFromRegistry', 'True', 'Pulled', image)];
}

/** Cordon and drain are the operator's; the daemon says nothing of them. */
const STAGES: readonly NodeConditionType[] = [
  'Updated',
  'UpdatePrepared',
  'ImagePulledFromRegistry',
  'UpdateExecuted',
  'AppliedFiles',
  'AppliedOSImage',
  'UpdatePostActionComplete',
  'RebootedNode',
  'UpdateComplete',
  'Resumed',
];

const GRANTED = condition('UpdatePrepared', 'True', 'Prepared', 'The update is granted');

function condition(
  type: NodeConditionType,
  status: NodeCondition['status'],
  reason: string,
  message: string,
): NodeCondition {
  return { type, status, reason, message: message.slice(0, LONGEST_MESSAGE) };
}
