import { expect, test } from 'vitest';
import { type AgreementFlags, agreementBy, type Plan } from './agreement.ts';

const plan: Plan = { warnings: ['infra is paused'], lines: ['worker: one reboot'], disrupts: true };
const live: Plan = { ...plan, disrupts: false };

/** @param answers to the questions, in order; undefined without a terminal. */
function conversation(answers?: readonly boolean[]) {
  const said: string[] = [];
  const left = [...(answers ?? [])];
  return {
    said,
    canAsk: () => answers !== undefined,
    ask: async (question: string) => {
      said.push(question);
      return left.shift();
    },
    print: (line: string) => said.push(line),
    warn: (line: string) => said.push(`warning: ${line}`),
  };
}

const SHOWN = ['warning: infra is paused', 'worker: one reboot'];

test.each<[string, AgreementFlags, readonly boolean[] | undefined, Plan, string, readonly string[]]>([
  ['a terminal and a reboot', {}, [true], plan, 'lookAgain', [...SHOWN, 'Continue?']],
  ['a terminal and no disruption', {}, [], live, 'apply', SHOWN],
  ['no terminal', {}, undefined, plan, 'apply', SHOWN],
  ['--yes', { yes: true }, [], plan, 'apply', SHOWN],
  ['--dry-run', { dryRun: true }, [], plan, 'dryRun', SHOWN],
  ['--dry-run and --yes', { dryRun: true, yes: true }, undefined, plan, 'dryRun', SHOWN],
])(
  'shows the plan first, and asks only where it has to: %s',
  async (_name, flags, answers, of, then, said) => {
    const talk = conversation(answers);
    expect(await agreementBy(flags, talk)(of)).toBe(then);
    expect(talk.said).toEqual(said);
  },
);

test('changes nothing without a yes', async () => {
  await expect(agreementBy({}, conversation([false]))(plan)).rejects.toThrow('no changes were made');
});

test('asks again only when the plan has changed since the answer', async () => {
  const talk = conversation([true, true]);
  const agree = agreementBy({}, talk);
  expect(await agree(plan)).toBe('lookAgain');
  expect(await agree({ ...plan, warnings: ['infra is paused since 10:03'] })).toBe('apply');
  expect(talk.said).toHaveLength(3);
  expect(await agree({ ...plan, lines: ['worker: two reboots'] })).toBe('lookAgain');
  expect(talk.said.slice(3)).toEqual([
    'warning: the cluster changed in the meantime; the plan is now:',
    ...['warning: infra is paused', 'worker: two reboots', 'Continue?'],
  ]);
});
