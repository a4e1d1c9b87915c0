import { expect, test } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { ServiceManager, ServiceState } from '../host/host.ts';
import { ServiceError } from '../host/systemctl.ts';
import { actOnServices, limitMsOf, withActionLimit } from './act-on-services.ts';

const flags = (...texts: string[]) =>
  texts.reduce<ReadonlyMap<string, number>>((before, text) => withActionLimit(text, before), new Map());

test('the narrowest limit holds', () => {
  const limits = {
    anyMs: 300_000,
    ownMs: flags('Restart(crio.service)=600', 'Restart=60', 'DaemonReload=5'),
  };
  expect(limitMsOf(limits, { type: 'Restart', service: 'crio.service' })).toBe(600_000);
  expect(limitMsOf(limits, { type: 'Restart', service: 'sshd.service' })).toBe(60_000);
  expect(limitMsOf(limits, { type: 'DaemonReload' })).toBe(5_000);
  expect(limitMsOf(limits, { type: 'Reload', service: 'crio.service' })).toBe(300_000);
});

test.each([
  'Restart',
  'Reboot=60',
  'Drain=60',
  'Restart(crio.service)=0',
  'Restart(crio.service)=1.5',
  'Restart()=60',
  'Restart(a b)=60',
  'restart=60',
])('%j is no limit', (text) => {
  expect(() => withActionLimit(text, new Map())).toThrow('Expected an action and seconds');
});

test('an action is ended at its own limit, and says which it was', async () => {
  const never = (_unit: string, signal: AbortSignal) =>
    new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const services = { restart: never, lastLines: async () => 'waits' } as unknown as ServiceManager;
  const acting = actOnServices({
    withdrawn: new Set(),
    services,
    actions: [{ type: 'Restart', service: 'slow.service' }],
    limits: { anyMs: 600_000, ownMs: new Map([['Restart(slow.service)', 20]]) },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow('restart slow.service: took longer than 0.02 s\nwaits');
});

test('actions are done in their order, each after it was announced, and what is no service is left out', async () => {
  const done: string[] = [];
  const services = {
    daemonReload: async () => void done.push('daemon-reload'),
    reload: async (unit: string) => void done.push(`reload ${unit}`),
    restart: async (unit: string) => void done.push(`restart ${unit}`),
  } as unknown as ServiceManager;
  await actOnServices({
    withdrawn: new Set(),
    services,
    actions: [
      { type: 'Drain' },
      { type: 'DaemonReload' },
      { type: 'Reload', service: 'a.service' },
      { type: 'Restart', service: 'b.service' },
      { type: 'Reboot' },
    ],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async ({ type }) => void done.push(`before ${type}`),
    signal: new AbortController().signal,
  });
  expect(done).toEqual([
    'before Drain',
    'before DaemonReload',
    'daemon-reload',
    'before Reload',
    'reload a.service',
    'before Restart',
    'restart b.service',
    'before Reboot',
  ]);
});

test('no action is begun once the daemon is to end', async () => {
  const ending = new AbortController();
  const done: string[] = [];
  const acting = actOnServices({
    withdrawn: new Set(),
    services: { restart: async (unit: string) => void done.push(unit) } as unknown as ServiceManager,
    actions: [
      { type: 'Restart', service: 'a.service' },
      { type: 'Restart', service: 'b.service' },
    ],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async () => ending.abort(new Error('ending')),
    signal: ending.signal,
  });
  await expect(acting).rejects.toThrow('ending');
  expect(done).toEqual(['a.service']);
});

test.each([
  [
    'as the service says it',
    new ServiceError('restart', 'a.service', 'exit code 1'),
    'restart a.service: exit code 1',
  ],
  ['as it came', new Error('the bus is gone'), 'the bus is gone'],
])('a failure within the limit is told %s', async (_name, error, message) => {
  const acting = actOnServices({
    withdrawn: new Set(),
    services: { restart: () => Promise.reject(error) } as unknown as ServiceManager,
    actions: [{ type: 'Restart', service: 'a.service' }],
    limits: { anyMs: 60_000, ownMs: new Map() },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow(message);
});

test('a reload of systemd that takes too long names systemd', async () => {
  const services = {
    daemonReload: (signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  } as unknown as ServiceManager;
  const acting = actOnServices({
    withdrawn: new Set(),
    services,
    actions: [{ type: 'DaemonReload' }],
    limits: { anyMs: 20, ownMs: new Map() },
    before: async () => undefined,
    signal: new AbortController().signal,
  });
  await expect(acting).rejects.toThrow(/daemonreload systemd: took longer than 0\.02 s$/);
});

test.each([
  ['Restart', 'active', ['stop own.service']],
  ['Restart', 'activating', ['stop own.service']],
  ['Restart', 'inactive', []],
  ['Restart', 'failed', []],
  ['Reload', 'active', []],
] as const)(
  'a %s of a unit that the update took away, while it is %s, asks for %j',
  async (type, state, asked) => {
    expect(await doneTo({ type, service: 'own.service' }, { state, isLoaded: false })).toEqual(asked);
  },
);

test('a unit of the operating system is restarted in place of the one that the update took away', async () => {
  const action = { type: 'Restart', service: 'own.service' } as const;
  expect(await doneTo(action, { state: 'active', isLoaded: true })).toEqual(['restart own.service']);
});

test('a unit that nobody took away and that systemd does not have fails', async () => {
  const action = { type: 'Restart', service: 'misspelled.service' } as const;
  await expect(doneTo(action, { state: 'inactive', isLoaded: false })).rejects.toThrow('unit not found');
});

test.each([
  [['sshd.service'], ['reload sshd.service']],
  [['ssh.service'], ['reload ssh.service']],
  [[], []],
])('sshd is reloaded by the name that it has on the host: of %j', async (active, asked) => {
  const asking: string[] = [];
  const services = {
    state: async (unit: string) => (active.includes(unit) ? 'active' : 'inactive'),
    reload: async (unit: string) => void asking.push(`reload ${unit}`),
  } as unknown as ServiceManager;
  await actOnServices({ ...common, services, actions: [{ type: 'Reload', service: 'sshd.service' }] });
  expect(asking).toEqual(asked);
});

const common = {
  withdrawn: new Set(['own.service']),
  limits: { anyMs: 60_000, ownMs: new Map() },
  before: async () => undefined,
  signal: new AbortController().signal,
};

/** @returns what is asked of the service manager for an action of an update that takes own.service away. */
async function doneTo(
  action: DisruptionAction,
  { state, isLoaded }: { readonly state: ServiceState; readonly isLoaded: boolean },
): Promise<readonly string[]> {
  const asked: string[] = [];
  const services = {
    state: async () => state,
    isLoaded: async () => isLoaded,
    stop: async (unit: string) => void asked.push(`stop ${unit}`),
    reload: async (unit: string) => void asked.push(`reload ${unit}`),
    restart: async (unit: string) => {
      if (!isLoaded) throw new ServiceError('restart', unit, 'unit not found');
      asked.push(`restart ${unit}`);
    },
  } as unknown as ServiceManager;
  await actOnServices({ ...common, services, actions: [action] });
  return asked;
}
