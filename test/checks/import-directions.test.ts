import { describe, expect, test } from 'vitest';
import { violations } from './import-directions.ts';

describe('import directions', () => {
  test.each([
    ['machineconfig/render.ts', "import { x } from '../api/object.ts';"],
    ['rollout/pools/a.ts', "import type { x } from '../../disruption/actions.ts';"],
    ['daemon/loop.ts', "import { readFile } from 'node:fs/promises';"],
    ['test/e2e/tour.ts', "import { x } from '../../cli/main.ts';"],
    ['machineconfig/a/b.ts', "import { x } from '../c.ts';"],
    ['workshop/sandbox/a.ts', "import { x } from '../apiserver/start.ts';"],
    ['workshop/apiserver/a.ts', "import { x } from '../../x509/certificate.ts';"],
    ['workshop/sandbox/a.ts', "import { x } from '@shale/apiserver/start.ts';"],
  ])('%s may say %s', (file, source) => {
    expect(violations(file, source)).toEqual([]);
  });

  test.each([
    ['api/object.ts', "import { x } from '../cluster/client.ts';"],
    ['image/layer.ts', "import type { x } from '../cluster/log.ts';"],
    ['opt-in/switch.ts', "import { x } from '../image/reference.ts';"],
    ['rollout/a.ts', "const x = await import('../builder/main.ts');"],
    ['disruption/a.ts', "import { readFileSync } from 'node:fs';"],
    ['x509/a.ts', "import { x } from '../image/digest.ts';"],
    ['cluster/a.ts', "import '../rollout/pools.ts';"],
    ['workshop/apiserver/a.ts', "import { x } from '../../api/object.ts';"],
    ['workshop/apiserver/a.ts', "import { x } from '../sandbox/record.ts';"],
    ['daemon/main.ts', "import { x } from '../workshop/sandbox/record.ts';"],
    ['cli/program.ts', "import { x } from '@shale/sandbox/command.ts';"],
  ])('%s may not say %s', (file, source) => {
    expect(violations(file, source)).toHaveLength(1);
  });
});
