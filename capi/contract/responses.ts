import type { CanUpdateAnswer, ObjectPatches, UpdateMachineAnswer } from './answers.ts';
import { HOOKS_API_VERSION, type Hook } from './hooks.ts';

/** The two hooks that ask whether an update can be made in place. */
type CanUpdateHook = Exclude<Hook, 'UpdateMachine'>;

/** The fields of the patches in each hook's response. */
const PATCH_FIELDS = {
  CanUpdateMachine: {
    machine: 'machinePatch',
    bootstrap: 'bootstrapConfigPatch',
    infrastructure: 'infrastructureMachinePatch',
  },
  CanUpdateMachineSet: {
    machine: 'machineSetPatch',
    bootstrap: 'bootstrapConfigTemplatePatch',
    infrastructure: 'infrastructureMachineTemplatePatch',
  },
} as const satisfies Readonly<Record<CanUpdateHook, Readonly<Record<keyof ObjectPatches, string>>>>;
type PatchField = (typeof PATCH_FIELDS)[CanUpdateHook][keyof ObjectPatches];

/** What every response of a hook has. */
interface Response {
  readonly apiVersion: string;
  readonly kind: string;
  readonly status: 'Success' | 'Failure';
  readonly message: string;
}

interface Patch {
  readonly patchType: 'JSONMergePatch';
  /** Base64, as Go writes []byte. */
  readonly patch: string;
}

/** `affectsAvailability`: absent is true, also for releases of Cluster API that know the field. */
type CanUpdateResponse = Response & {
  readonly affectsAvailability?: boolean;
} & Partial<Readonly<Record<PatchField, Patch>>>;

/**
 * @returns the response with what an answer says. `affectsAvailability` came after Cluster API 1.14
 *   (kubernetes-sigs/cluster-api, issue 14160); releases before ignore it, as they do every field that they don't know.
 */
export function canUpdateResponse(hook: CanUpdateHook, answer: CanUpdateAnswer): CanUpdateResponse {
  if (answer.kind !== 'inPlace') {
    return responseOf(hook, answer.kind === 'failure' ? 'Failure' : 'Success', answer.message);
  }
  const names = PATCH_FIELDS[hook];
  const patches = (['machine', 'bootstrap', 'infrastructure'] as const).flatMap((object) => {
    const text = answer.patches[object];
    return text === undefined ? [] : [[names[object], mergePatch(text)] as const];
  });
  return {
    ...responseOf(hook, 'Success', answer.message),
    ...Object.fromEntries(patches),
    affectsAvailability: answer.affectsAvailability,
  };
}

/** @returns the response with what an answer says: a retry is what Cluster API takes for an update in progress. */
export function updateMachineResponse(
  answer: UpdateMachineAnswer,
): Response & { readonly retryAfterSeconds: number } {
  const status = answer.kind === 'failure' ? 'Failure' : 'Success';
  const retryAfterSeconds =
    answer.kind === 'inProgress' ? Math.max(1, Math.ceil(answer.retryAfterSeconds)) : 0;
  return { ...responseOf('UpdateMachine', status, answer.message), retryAfterSeconds };
}

function responseOf(hook: Hook, status: Response['status'], message: string): Response {
  return { apiVersion: HOOKS_API_VERSION, kind: `${hook}Response`, status, message };
}

function mergePatch(text: string): Patch {
  return { patchType: 'JSONMergePatch', patch: Buffer.from(text).toString('base64') };
}
