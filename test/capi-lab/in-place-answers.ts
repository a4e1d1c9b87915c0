import type { Answers, HookBody } from './recording-extension.ts';

interface Templates {
  readonly machineSet: Template;
  readonly infrastructureMachineTemplate: Template;
  readonly bootstrapConfigTemplate?: Template;
}

interface Template {
  readonly spec: { readonly template: { readonly spec: unknown } };
}

/** A difference that none of these patches takes over makes Cluster API replace the machines. */
const PATCHED = [
  ['machineSet', 'machineSetPatch'],
  ['infrastructureMachineTemplate', 'infrastructureMachineTemplatePatch'],
  ['bootstrapConfigTemplate', 'bootstrapConfigTemplatePatch'],
] as const;

/** @returns the answer to CanUpdateMachineSet of an extension that can do everything in place. */
export function everythingInPlace(request: HookBody): HookBody {
  const { desired } = request as unknown as { readonly desired: Templates };
  const patches = PATCHED.flatMap(([object, patch]) => {
    const template = desired[object];
    return template === undefined ? [] : [[patch, toSpec(template)] as const];
  });
  return Object.fromEntries(patches);
}

function toSpec({ spec }: Template) {
  const operations = [{ op: 'replace', path: '/spec/template/spec', value: spec.template.spec }];
  return { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(operations)).toString('base64') };
}

/** @returns the name of the Machine that UpdateMachine is about. */
export function machineOf(request: HookBody): string {
  const { desired } = request as unknown as {
    readonly desired: { readonly machine: { readonly metadata: { readonly name: string } } };
  };
  return desired.machine.metadata.name;
}

/** @returns answers that do everything in place, each machine at the second request. */
export function updatedAtSecondRequest(): Pick<Answers, 'CanUpdateMachineSet' | 'UpdateMachine'> {
  const begun = new Set<string>();
  return {
    CanUpdateMachineSet: everythingInPlace,
    UpdateMachine: (request) => {
      const name = machineOf(request);
      if (begun.has(name)) return { retryAfterSeconds: 0, message: 'the machine is updated' };
      begun.add(name);
      return IN_PROGRESS;
    },
  };
}

/** The answer to UpdateMachine while an update goes on. */
export const IN_PROGRESS: HookBody = { retryAfterSeconds: 1, message: 'the machine is being updated' };
