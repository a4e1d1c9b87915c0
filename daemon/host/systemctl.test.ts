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

/** Jobs without the second in which a unit has to stay active. */
const impatient = (run: RunOsCommand) => new Systemctl(run, async () => undefined);

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

  it('takes a unit that nothing is said of for one that is not there', () => {
    expect(parseUnitProperties('=active\nno property\n')).toEqual({
      loadState: 'not-found',
      activeState: 'unknown',
      restarts: 0,
      type: '',
      result: '',
    });
  });
});

describe('unitProgress', () => {
  it.each([
    ['active', unit(), 'done'],
    ['starting', unit({ activeState: 'activating' }), 'pending'],
    ['a oneshot that ended well', unit({ activeState: 'inactive', type: 'oneshot' }), 'done'],
    ['a service that ended', unit({ activeState: 'inactive' }), { failed: 'ended (success)' }],
    [
      'a oneshot that ended badly',
      unit({ activeState: 'inactive', type: 'oneshot', result: 'timeout' }),
      { failed: 'ended (timeout)' },
    ],
    ['stopping', unit({ activeState: 'deactivating' }), 'pending'],
    ['reloading', unit({ activeState: 'reloading' }), 'pending'],
    ['in a state that is not known', unit({ activeState: 'unknown' }), 'pending'],
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
    await impatient(run).restart('crio.service', signal);
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

  it.each(['restart', 'start', 'reload'] as const)(
    '%s waits until the unit has stayed active for a second, from the start again where it did not',
    async (action) => {
      const states = ['inactive', 'active', 'activating'];
      const { run, commands } = scripted((command) =>
        command.startsWith('systemctl show')
          ? ACTIVE.replace('ActiveState=active', `ActiveState=${states.shift() ?? 'active'}`)
          : '',
      );
      const waits: number[] = [];
      await new Systemctl(run, async (ms) => void waits.push(ms))[action]('crio.service', signal);
      // As often as another state was prescribed and once for that which broke off, then for the second.
      expect(waits).toEqual(Array.from({ length: 2 + 5 }, () => 200));
      expect(commands.filter((command) => !command.startsWith('systemctl show'))).toEqual([
        `systemctl ${action} -- crio.service`,
      ]);
      // Once before, as often as a state was prescribed, and five times in the second that it then stayed active.
      expect(commands.filter((command) => command.startsWith('systemctl show'))).toHaveLength(3 + 5);
    },
  );

  it('ends its wait with the signal', async () => {
    const ending = new AbortController();
    const { run } = scripted((command) => {
      if (command.startsWith('systemctl start')) ending.abort(new Error('the daemon ends'));
      return ACTIVE;
    });
    const started = new Systemctl(run).start('x.service', ending.signal);
    await expect(started).rejects.toMatchObject({ name: 'AbortError' });
  });

  it.each([
    // `restart` sets the count back to 0.
    ['restart', 3, 2, 'crashed and was started again (signal)'],
    ['restart', 3, 0, undefined],
    ['reload', 3, 3, undefined],
    ['reload', 3, 4, 'crashed and was started again (signal)'],
  ] as const)(
    '%s of a unit that was started again %i times before and %i after: %s',
    async (action, before, after, expected) => {
      const counts = [before];
      const { run } = scripted((command) => {
        if (!command.startsWith('systemctl show')) return '';
        return ACTIVE.replace('NRestarts=0', `NRestarts=${counts.shift() ?? after}`).replace(
          'success',
          'signal',
        );
      });
      const done = impatient(run)[action]('x.service', signal);
      if (expected === undefined) await expect(done).resolves.toBeUndefined();
      else await expect(done).rejects.toThrow(`${action} x.service: ${expected}`);
    },
  );

  it.each([
    ['restart', 'start-limit-hit', 2],
    ['start', 'start-limit-hit', 2],
    ['restart', 'exit-code', 1],
    ['start', 'success', 1],
  ] as const)('%s of a unit that ended with %s is tried %i times', async (action, result, times) => {
    let isReset = false;
    const { run, commands } = scripted((command) => {
      if (command.startsWith('systemctl show'))
        return isReset ? ACTIVE : ACTIVE.replace('success', result).replace('=active', '=failed');
      if (command.startsWith('systemctl reset-failed')) isReset = true;
      else if (command.startsWith(`systemctl ${action}`) && !isReset)
        throw new OsCommandError(['systemctl'], 'exit code 1', { exitCode: 1, stderr: 'Job failed.' });
      return '';
    });
    const done = impatient(run)[action]('crio.service', signal);
    if (times === 1) await expect(done).rejects.toThrow(`${action} crio.service: Job failed.`);
    else await expect(done).resolves.toBeUndefined();
    const job = `systemctl ${action} -- crio.service`;
    expect(commands.filter((command) => /^systemctl (?!show)/.test(command))).toEqual(
      times === 1 ? [job] : [job, 'systemctl reset-failed -- crio.service', job],
    );
  });

  it('a unit that may not be started as often as that is tried no third time', async () => {
    const { run, commands } = scripted((command) => {
      if (command.startsWith('systemctl show')) return ACTIVE.replace('success', 'start-limit-hit');
      if (command.startsWith('systemctl start'))
        throw new OsCommandError(['systemctl'], 'exit code 1', { exitCode: 1, stderr: 'Job failed.' });
      return '';
    });
    await expect(impatient(run).start('x.service', signal)).rejects.toThrow('start x.service: Job failed.');
    expect(commands.filter((command) => command.startsWith('systemctl start'))).toHaveLength(2);
  });

  it('hands on what is no failure of systemctl', async () => {
    const { run } = scripted((command) => {
      if (command.startsWith('systemctl show')) return ACTIVE;
      throw new TypeError('not a command');
    });
    await expect(new Systemctl(run).start('x.service', signal)).rejects.toThrow(TypeError);
  });

  it('explains a failure by what systemctl ended with where it printed nothing', async () => {
    const { run } = scripted((command) => {
      if (command.startsWith('systemctl show')) return ACTIVE;
      if (command.startsWith('journalctl')) throw new Error('no journal');
      throw new OsCommandError(['systemctl'], 'exit code 4', { exitCode: 4, stderr: '\n' });
    });
    const failed = await new Systemctl(run).start('x.service', signal).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ServiceError);
    expect(failed).toMatchObject({ action: 'start', unit: 'x.service', cause: expect.any(OsCommandError) });
    expect((failed as Error).message).toMatch(/^start x\.service: .*exit code 4$/);
  });

  it.each([
    ['daemonReload', [], 'systemctl daemon-reload'],
    ['stop', ['x.timer'], 'systemctl stop -- x.timer'],
    ['lastLines', ['x.timer'], 'journalctl --no-pager --output=cat --lines=20 --unit=x.timer'],
  ] as const)('%s runs one command', async (method, args, expected) => {
    const { run, commands } = scripted(() => '');
    const systemctl = new Systemctl(run);
    await (systemctl[method] as (...args: readonly unknown[]) => Promise<unknown>).call(
      systemctl,
      ...args,
      signal,
    );
    expect(commands).toEqual([expected]);
  });

  it('gives a job as long as its caller does, and everything else a minute or two', async () => {
    const limits: Record<string, number> = {};
    const systemctl = impatient(async ([program, verb = ''], { timeoutMs }) => {
      limits[program === 'systemctl' ? verb : program] = timeoutMs;
      return ACTIVE;
    });
    await systemctl.daemonReload(signal);
    await systemctl.start('x.service', signal);
    await systemctl.stop('x.service', signal);
    await systemctl.lastLines('x.service', signal);
    expect(limits).toEqual({
      'daemon-reload': 60_000,
      show: 60_000,
      start: 3_600_000,
      stop: 3_600_000,
      journalctl: 60_000,
    });
  });

  it.each([
    ['loaded', 'active', true],
    ['not-found', 'inactive', false],
    ['masked', 'inactive', false],
  ])('of a unit that is %s and %s it knows both', async (load, active, isLoaded) => {
    const { run } = scripted(() => ACTIVE.replace('loaded', load).replace('=active', `=${active}`));
    const systemctl = new Systemctl(run);
    expect(await systemctl.state('x.service', signal)).toBe(active);
    expect(await systemctl.isLoaded('x.service', signal)).toBe(isLoaded);
  });

  it.each(['stop', 'state', 'isLoaded'] as const)('%s takes no option for a unit', async (method) => {
    const { run, commands } = scripted(() => ACTIVE);
    await expect(new Systemctl(run)[method]('--all', signal)).rejects.toThrow(
      'not the name of a systemd unit',
    );
    expect(commands).toEqual([]);
  });

  it.each([
    [
      'all of a short journal',
      `${'a'.repeat(399)}\n${'b'.repeat(400)}`,
      `${'a'.repeat(399)}\n${'b'.repeat(400)}`,
    ],
    ['the last whole lines of a longer one', `${'a'.repeat(400)}\n${'b'.repeat(400)}`, 'b'.repeat(400)],
  ])('keeps %s', async (_what, journal, expected) => {
    const { run } = scripted(() => journal);
    expect(await new Systemctl(run).lastLines('x.service', signal)).toBe(expected);
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
