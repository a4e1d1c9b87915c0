import { z } from 'zod';

/** systemd unit name with its suffix; template instances (`x@y.service`) are taken too, which MCO refuses. */
export const ServiceName = z
  .string()
  .max(255)
  .regex(
    /^[a-zA-Z0-9:._\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/,
  )
  .describe('A systemd unit by its full name, such as chronyd.service.');

const service = z.object({ serviceName: ServiceName });

const serviceRules = [
  {
    rule: "has(self.type) && self.type == 'Reload' ? has(self.reload) : !has(self.reload)",
    message: 'reload is required when type is Reload, and forbidden otherwise',
  },
  {
    rule: "has(self.type) && self.type == 'Restart' ? has(self.restart) : !has(self.restart)",
    message: 'restart is required when type is Restart, and forbidden otherwise',
  },
];

const ACTION = 'What a node does; Reboot and None stand alone.';

/** An action as an admin writes it in spec.nodeDisruptionPolicy. */
export const PolicyAction = z
  .object({
    type: z.enum(['Reboot', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'None']).describe(ACTION),
    reload: service.exactOptional().describe('The unit, of a Reload.'),
    restart: service.exactOptional().describe('The unit, of a Restart.'),
  })
  .meta({ 'x-kubernetes-validations': serviceRules });
export type PolicyAction = z.infer<typeof PolicyAction>;

/** An action as the operator writes it in status: Special is MCO's own rule for registries.conf. */
export const EffectiveAction = z
  .object({
    type: z
      .enum(['Reboot', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'None', 'Special'])
      .describe(`${ACTION} Special is MCO's rule for registries.conf.`),
    reload: service.exactOptional().describe('The unit, of a Reload.'),
    restart: service.exactOptional().describe('The unit, of a Restart.'),
  })
  .meta({ 'x-kubernetes-validations': serviceRules });
export type EffectiveAction = z.infer<typeof EffectiveAction>;

/**
 * What a node does to take a change, as Shale's own code speaks of it: the service stands in the action, so an action
 * without the service it needs can't be made. Special never gets this far: it has been decided by then.
 */
export const DisruptionAction = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Drain').describe('What the node does.') }),
  z.object({ type: z.literal('DaemonReload') }),
  z.object({ type: z.literal('Reload'), service: ServiceName }),
  z.object({ type: z.literal('Restart'), service: ServiceName }),
  z.object({ type: z.literal('Reboot') }),
]);
export type DisruptionAction = z.infer<typeof DisruptionAction>;

/**
 * What one changed thing asks for and which rule said so.
 * `subject` is a path, a unit name, or a field such as kernelArguments.
 */
export const DisruptionCause = z.object({
  subject: z.string().max(4096).describe('What changes: a path, a unit, or a field.'),
  kind: z.enum(['file', 'unit', 'sshKey', 'field']).describe('What the subject is.'),
  change: z.enum(['added', 'changed', 'removed']).describe('What becomes of it.'),
  rule: z
    .string()
    .max(4096)
    .describe('Which policy decided, for example "policy file /etc/chrony.conf" or "no policy: Reboot".'),
  actions: z.array(DisruptionAction).max(20).describe('What it asks for; empty: nothing.'),
});
export type DisruptionCause = z.infer<typeof DisruptionCause>;

/**
 * @returns whether the actions need the node to be empty: a drain or a reboot takes its workloads, services do not. Such an
 *   update needs leave to disrupt, and takes one of the pool's maxUnavailable.
 */
export function isDisruptive(actions: readonly DisruptionAction[]): boolean {
  return actions.some(({ type }) => type === 'Drain' || type === 'Reboot');
}

/**
 * @returns an action in words, as tables, events and logs show it: `Restart(chronyd.service)`.
 */
export function formatAction(action: DisruptionAction): string {
  switch (action.type) {
    case 'Reload':
    case 'Restart':
      return `${action.type}(${action.service})`;
    case 'Drain':
    case 'DaemonReload':
    case 'Reboot':
      return action.type;
  }
}

/** @returns a list of actions in words; `None` for an empty one. */
export function formatActions(actions: readonly DisruptionAction[]): string {
  return formatAsked({ actions });
}

/** @returns what an update asks of a node in words, with the sort of its reboot: `Reboot (soft)`. */
export function formatAsked({
  actions,
  softReboot = false,
}: {
  readonly actions: readonly DisruptionAction[];
  readonly softReboot?: boolean;
}): string {
  const words = actions.map(formatAction);
  const asked = softReboot ? words.map((word) => (word === 'Reboot' ? 'Reboot (soft)' : word)) : words;
  return asked.length === 0 ? 'None' : asked.join(', ');
}
