import { z } from 'zod';
import {
  formatMachine,
  formatMachineOwner,
  type MachineOwner,
  type MachineReference,
  parseMachine,
  parseMachineOwner,
} from './machine-owner.ts';
import { LONGEST_MESSAGE, Timestamp } from './object.ts';
import { DigestedPullspecSchema } from './references.ts';

/*
 * Requests that people make with the command line, and Cluster API by its extension, each as JSON in an annotation of
 * the object that it is about (api/names.ts).
 */

const Id = z.string().min(1).max(64);
/** Longest user name in a request; longer ones are cut. */
const LONGEST_USER = 253;
/** Longest reason in a request; longer ones are cut. */
const LONGEST_REASON = 512;
const User = z.string().max(LONGEST_USER);

function parserOf<T>(schema: z.ZodType<T>): (text: string) => T {
  return (text) => schema.parse(JSON.parse(text));
}

const RepairRequest = z.object({
  id: Id,
  by: User.default(''),
  at: z.string().max(64).default(''),
  /** Who may hold the node lease when the repair is carried out; absent: the operator. */
  leaseHolder: z.string().optional(),
});

/** A request to restore what was changed by hand on a node, as its annotation has it. */
export type RepairRequest = z.infer<typeof RepairRequest>;

/** @returns the annotation's text. */
export function formatRepairRequest({ id, by, at, leaseHolder }: RepairRequest): string {
  return JSON.stringify({ id, by: by.slice(0, LONGEST_USER), at, leaseHolder });
}

/** @returns the request of the annotation's text. @throws Error that says what of it is wrong. */
export const parseRepair = parserOf(RepairRequest);

/** How a repair ended; a daemon that has one carries the request out no second time. */
export const RepairRecord = z.object({
  id: Id.describe('The id of the request, as the annotation has it.'),
  by: User.describe('The user who requested the repair.'),
  finishedAt: Timestamp.describe('When the daemon was done.'),
  result: z
    .enum(['Succeeded', 'Failed'])
    .describe(
      'Failed: it is not tried again. A path that still differs after a repair that succeeded, such as one in /usr, is in the message of NodeDegraded.',
    ),
  message: z.string().max(LONGEST_MESSAGE).exactOptional().describe('Why the repair failed.'),
});
export type RepairRecord = z.infer<typeof RepairRecord>;

const ConfigName = z.string().min(1).max(253);

const RetryRequest = z.object({
  config: ConfigName,
  image: DigestedPullspecSchema.optional(),
  failedAt: z.string().min(1).max(64),
  by: User.default(''),
  at: z.string().max(64).default(''),
});

/**
 * A request to take a target again at which a node failed, as its annotation has it. `failedAt`: when that update
 * ended. So it is for this one failure: neither for another target nor for the next failure at the same one.
 */
export type RetryRequest = z.infer<typeof RetryRequest>;

/** @returns the annotation's text. */
export function formatRetryRequest(request: RetryRequest): string {
  return JSON.stringify({ ...request, by: request.by.slice(0, LONGEST_USER) });
}

/** @returns the request of the annotation's text. @throws Error that says what of it is wrong. */
export const parseRetry = parserOf(RetryRequest);

/** @returns whether the request is about the update that ended so. */
export function isRetryOf(
  { config, image, failedAt }: RetryRequest,
  update: { readonly config: string; readonly image?: string; readonly finishedAt: string },
): boolean {
  return config === update.config && image === update.image && failedAt === update.finishedAt;
}

const RebootRequest = z.object({
  bootID: z.string().min(1).max(64),
  by: User.default(''),
  reason: z.string().max(LONGEST_REASON).default(''),
  at: z.string().max(64).default(''),
});

/**
 * A request to reboot a node, as its annotation has it. `bootID`: the boot that it is about. So it requests nothing any
 * more once the node has booted again, no matter who rebooted it.
 */
export type RebootRequest = z.infer<typeof RebootRequest>;

/** @returns the annotation's text. */
export function formatRebootRequest({ bootID, by, reason, at }: RebootRequest): string {
  return JSON.stringify({
    bootID,
    by: by.slice(0, LONGEST_USER),
    reason: reason.slice(0, LONGEST_REASON),
    at,
  });
}

/** @returns the request of the annotation's text. @throws Error that says what of it is wrong. */
export const parseReboot = parserOf(RebootRequest);

const PowerOffRequest = RebootRequest.extend({ leaseHolder: z.string().min(1) });

/**
 * A request to power a machine off, as its annotation has it: for the boot that it names, and only while `leaseHolder`,
 * the maintenance that requests it, has the node's lease.
 */
export type PowerOffRequest = z.infer<typeof PowerOffRequest>;

/** @returns the annotation's text. */
export function formatPowerOffRequest({ leaseHolder, ...request }: PowerOffRequest): string {
  return JSON.stringify({ ...JSON.parse(formatRebootRequest(request)), leaseHolder });
}

/** @returns the request of the annotation's text. @throws Error that says what of it is wrong. */
export const parsePowerOff = parserOf(PowerOffRequest);

const RollbackRequest = z.object({
  config: ConfigName,
  image: DigestedPullspecSchema.optional(),
  by: z.string().default(''),
  reason: z.string().default(''),
  at: z.string().default(''),
  /** The pool's target when the rollback was requested; the operator writes it. */
  from: z
    .object({ config: ConfigName, layered: z.boolean(), image: DigestedPullspecSchema.optional() })
    .optional(),
  /**
   * RFC 3339: until when nodes wait for another label of the image, by which they don't reboot; the operator writes it.
   */
  waitsUntil: z.string().optional(),
  /** The id of the deadline that passed, if that is why; the operator writes it. */
  unconfirmed: Id.optional(),
});

/** A request to roll a pool back, as its annotation has it. */
export type RollbackRequest = z.infer<typeof RollbackRequest>;

/** @throws Error that says what of the annotation's text is wrong. */
export const parseRollback = parserOf(RollbackRequest);

const RollbackDeadline = z.object({
  /** Another id is another deadline, for which the operator records again what the pool runs. */
  id: Id,
  until: z.iso.datetime({ offset: true }),
  by: User.default(''),
  reason: z.string().default(''),
  at: z.string().default(''),
});

/** When a pool is rolled back unless its change is confirmed, as its annotation has it. */
export type RollbackDeadline = z.infer<typeof RollbackDeadline>;

/** @throws Error that says what of the annotation's text is wrong. */
export const parseDeadline = parserOf(RollbackDeadline);

const ClusterApiUpdateText = z.object({
  owner: z.string(),
  machine: z.string(),
  at: z.iso.datetime({ offset: true }),
});

/** Cluster API has handed a Machine over for its update in place, as the annotation of its node has it. */
export interface ClusterApiUpdate {
  readonly owner: MachineOwner;
  readonly machine: MachineReference;
  /** RFC 3339: when it was handed over. */
  readonly at: string;
}

/** @returns the annotation's text. */
export function formatClusterApiUpdate({ owner, machine, at }: ClusterApiUpdate): string {
  return JSON.stringify({ owner: formatMachineOwner(owner), machine: formatMachine(machine), at });
}

/** @returns the update of the annotation's text. @throws Error that says what of it is wrong. */
export function parseClusterApiUpdate(text: string): ClusterApiUpdate {
  const { owner, machine, at } = ClusterApiUpdateText.parse(JSON.parse(text));
  return { owner: parseMachineOwner(owner), machine: parseMachine(machine), at };
}
