import { describe, expect, it } from 'vitest';
import { OsCommandError, type RunOsCommand } from '../os/os-command.ts';
import {
  assertUnitName,
  parseUnitProperties,
  ServiceError,
  Systemctl,
  type UnitProperties,
  unitProgress,
} from './systemctl.ts';

/** As systemd 252 prints it. */
const ACTIVE = 'Type=notify\nResult=success\nNRestarts=0\nLoadState=loaded\nActiveState=active\n';

const unit = (properties: Partial<UnitProperties> = {}): UnitProperties => ({
  ...parseUnitProperties(ACTIVE),
  ...properties,
});

const signal = new AbortController().signal;

/** Stands in for a host: answers each command by what the test says. */
function scripted(answer: (command: string) => string): {
  readonly run: RunOsCommand;
  readonly commands: string[];
} {
  const commands: string[] = [];
  return {
    commands,
    run: async (command) => {
      commands.push(command.join(' '));
      return answer(command.join(' '));
    },
  };
}

describe('parseUnitProperties', () => {
  it('reads what systemctl show prints', () => {
    expect(parseUnitProperties(ACTIVE)).toEqual({
      loadState: 'loaded',
      activeState: 'active',
      restarts: 0,
      type: 'notify',
      result: 'success',
    });
  });

  it('takes a state it does not know for unknown', () => {
    expect(parseUnitProperties('ActiveState=maintenance\n').activeState).toBe('unknown');
  });
});

describe('unitProgress', () => {
  it.each([
    ['active', unit(), 'done'],
    ['starting', unit({ activeState: 'activating' }), 'pending'],
    ['a oneshot that ended well', unit({ activeState: 'inactive', type: 'oneshot' }), 'done'],
    ['a service that ended', unit({ activeState: 'inactive' }), { failed: 'ended (success)' }],
    [
      'failed',
      unit({ activeState: 'failed', result: 'exit-code' }),
      { failed: 'unit entered failed state (exit-code)' },
    ],
    [
      'crash loop',
      unit({ restarts: 1, result: 'signal' }),
      { failed: 'crashed and was started again (signal)' },
    ],
  ])('%s', (_name, now, expected) => {
    expect(unitProgress(unit(), now)).toEqual(expected);
  });
});

describe('systemctl', () => {
  it('restarts a unit and makes sure that it stays active', async () => {
    const { run, commands } = scripted((command) => (command.startsWith('systemctl show') ? ACTIVE : ''));
    await new Systemctl(run).restart('crio.service', signal);
    expect(commands[1]).toBe('systemctl restart -- crio.service');
    expect(commands.filter((command) => command.startsWith('systemctl show')).length).toBeGreaterThan(2);
  });

  it('reports a failure with the unit’s last journal lines', async () => {
    const { run } = scripted((command) => {
      if (command.startsWith('systemctl show')) return ACTIVE;
      if (command.startsWith('journalctl')) return 'bad option on line 3';
      throw new OsCommandError(['systemctl'], 'exit code 1', {
        exitCode: 1,
        stderr: 'Job for x.service failed.',
      });
    });
    const restarted = new Systemctl(run).restart('x.service', signal);
    await expect(restarted).rejects.toThrow(
      'restart x.service: Job for x.service failed.\nbad option on line 3',
    );
  });

  it('refuses a unit that is not there or masked before it does anything', async () => {
    const { run, commands } = scripted(() => ACTIVE.replace('loaded', 'masked'));
    await expect(new Systemctl(run).restart('x.service', signal)).rejects.toThrow(
      'restart x.service: unit is masked',
    );
    expect(commands).toHaveLength(1);
  });

  it.each(['--root=/', 'x', 'x.service\ny.service', '../x.service', `${'x'.repeat(300)}.service`])(
    'takes %j for no unit',
    async (name) => {
      const { run, commands } = scripted(() => ACTIVE);
      await expect(new Systemctl(run).restart(name, signal)).rejects.toThrow(
        'not the name of a systemd unit',
      );
      expect(commands).toEqual([]);
    },
  );
});

it.each<[string, boolean]>([
  ['crio.service', true],
  ['getty@tty1.service', true],
  [`${'a'.repeat(247)}.service`, true],
  [`${'a'.repeat(248)}.service`, false],
  ['-f.service', false],
  ['a b.service', false],
  ['crio.exe', false],
  ['', false],
])('%s is the name of a unit: %s', (name, valid) => {
  if (valid) expect(() => assertUnitName('restart', name)).not.toThrow();
  else expect(() => assertUnitName('restart', name)).toThrow(ServiceError);
});
