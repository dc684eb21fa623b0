/** "Run as Job…": for the file that is selected, or the document that is open. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { LabIcon } from '@jupyterlab/ui-components';

import type { Agent } from './api.js';

export const RUN_AS_JOB = 'gpu-workspaces:run-as-job';

const icon = new LabIcon({
  name: 'gpu-workspaces:job',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
    <g class="jp-icon3" fill="#616161"><path d="M4 5h9v2H4zm0 4h9v2H4zm0 4h6v2H4zm9 0v7l7-3.5z"/></g></svg>`,
});

/** Files that can be run, by what their names end in. */
const RUNNABLE = /\.(ipynb|py|sh)$/;

export function addJobCommand(
  app: JupyterFrontEnd,
  agent: Agent,
  manager: IDocumentManager,
  files: IFileBrowserFactory | null,
  offered: () => boolean,
): void {
  const wanted = (args: { [key: string]: unknown }): string | null => {
    const selected = args.selected ? files?.tracker.currentWidget?.selectedItems().next().value?.path : null;
    const current = app.shell.currentWidget && manager.contextForWidget(app.shell.currentWidget)?.path;
    const path = selected ?? current ?? null;
    return path && RUNNABLE.test(path) ? path : null;
  };
  app.commands.addCommand(RUN_AS_JOB, {
    label: args => (args.toolbar ? '' : 'Run as Job…'),
    caption: 'Run this file as a job, without this server',
    describedBy: {
      args: { type: 'object', properties: { selected: { type: 'boolean' }, toolbar: { type: 'boolean' } } },
    },
    icon,
    isVisible: offered,
    isEnabled: args => offered() && wanted(args) !== null,
    execute: async args => {
      const path = wanted(args);
      if (path) {
        await run(path, agent, manager, app);
      }
    },
  });
}

async function run(
  path: string,
  agent: Agent,
  manager: IDocumentManager,
  app: JupyterFrontEnd,
): Promise<void> {
  // Now, for later the browser would take it for an advertisement.
  const page = window.open('', '_blank');
  try {
    for (const widget of app.shell.widgets('main')) {
      const context = manager.contextForWidget(widget);
      if (context?.path === path && context.model.dirty) {
        await context.save();
      }
    }
    const url = await agent.job(path);
    if (page) {
      page.opener = null;
      page.location.replace(url);
    } else {
      window.location.assign(url);
    }
  } catch (error) {
    page?.close();
    await showErrorMessage('Run as Job', error instanceof Error ? error.message : String(error));
  }
}
