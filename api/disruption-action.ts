import { z } from 'zod';

/** systemd unit name with its suffix; template instances (`x@y.service`) are allowed, unlike in MCO. */
export const ServiceName = z
  .string()
  .max(255)
  .regex(
    /^[a-zA-Z0-9:._\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/,
    { error: 'the full name of a systemd unit, such as chronyd.service' },
  )
  .describe('Full name of a systemd unit, such as chronyd.service.');

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

const ACTION = 'The action of the node. Reboot and None can not be combined with other actions.';

/** An action as an admin writes it in spec.nodeDisruptionPolicy. */
export const PolicyAction = z
  .object({
    type: z.enum(['Reboot', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'None']).describe(ACTION),
    reload: service.exactOptional().describe('The unit to reload, for type Reload.'),
    restart: service.exactOptional().describe('The unit to restart, for type Restart.'),
  })
  .meta({ 'x-kubernetes-validations': serviceRules });
export type PolicyAction = z.infer<typeof PolicyAction>;

/** An action as the operator writes it in status: Special is MCO's own rule for registries.conf. */
export const EffectiveAction = z
  .object({
    type: z
      .enum(['Reboot', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'None', 'Special'])
      .describe(
        `${ACTION} Special is MCO's rule for registries.conf: a reload of the container runtime, after a drain unless the change is safe.`,
      ),
    reload: service.exactOptional().describe('The unit to reload, for type Reload.'),
    restart: service.exactOptional().describe('The unit to restart, for type Restart.'),
  })
  .meta({ 'x-kubernetes-validations': serviceRules });
export type EffectiveAction = z.infer<typeof EffectiveAction>;

/**
 * An action of a node in Shale's own code: the service is part of the action, so that an action without its service
 * can't be constructed. Special has been replaced by concrete actions here.
 */
export const DisruptionAction = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Drain').describe('The action of the node.') }),
  z.object({ type: z.literal('DaemonReload') }),
  z.object({ type: z.literal('Reload'), service: ServiceName }),
  z.object({ type: z.literal('Restart'), service: ServiceName }),
  z.object({ type: z.literal('Reboot') }),
]);
export type DisruptionAction = z.infer<typeof DisruptionAction>;

/**
 * The actions that one change requires, and the rule that decided them.
 * `subject` is a path, a unit name, or a field such as kernelArguments.
 */
export const DisruptionCause = z.object({
  subject: z.string().max(4096).describe('The changed path, unit or field.'),
  kind: z.enum(['file', 'unit', 'sshKey', 'field']).describe('Kind of the subject.'),
  change: z.enum(['added', 'changed', 'removed']).describe('How the subject changes.'),
  rule: z
    .string()
    .max(4096)
    .describe(
      'The policy that decided, for example "policy for /etc/chrony.conf" or "no policy covers it: Reboot".',
    ),
  actions: z.array(DisruptionAction).max(20).describe('The actions that the change requires; empty: none.'),
});
export type DisruptionCause = z.infer<typeof DisruptionCause>;

/**
 * @returns whether the actions evict workloads: a drain or a reboot does, services do not. Such an update needs the
 *   grant Disrupt and counts against the pool's maxUnavailable.
 */
export function isDisruptive(actions: readonly DisruptionAction[]): boolean {
  return actions.some(({ type }) => type === 'Drain' || type === 'Reboot');
}

/**
 * @returns an action as text for tables, events and logs: `Restart(chronyd.service)`.
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

/** @returns a list of actions as text; `None` for an empty one. */
export function formatActions(actions: readonly DisruptionAction[]): string {
  return formatAsked({ actions });
}

/** @returns the actions of an update as text, with the kind of its reboot: `Reboot (soft)`. */
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
