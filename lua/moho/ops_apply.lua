-- moho.apply: one long application part by part, shown, stopped and gone on with.
local core = require "moho.core"
local schema = require "moho.schema"

local M = {}

M.apply = schema.fn{
  name = "apply", group = "operators",
  help = [[
y = A x, one long application part by part: with progress and the time left on a terminal, stopped by Ctrl-C, and with a checkpoint gone on with:

  image, info = moho.apply{ A = K.H, x = d, checkpoint = "image.h5" }

The same call after an end of any kind, also that of the machine, goes on from the file, and gives the bits of a call that was never stopped; one that is
over gives its result again. A is a Kirchhoff operator, or begins with one or with the lift of its data (moho.lift(K.dimsd).H * K * moho.lift(K.dims)), or is
a stack (moho.vstack); or it is the adjoint of such a one. Parts are groups of sources, of a stack its operators. The file is written whole or not
at all; one of another A, x, version of moho or of other parts is refused. info has groups, how many parts there were, resumed, how many of them came from the
file, and seconds.]],
  args = {
    { "A", "operator", need = true, help = "the operator, A.dimsd <- A.dims" },
    { "x", "array", need = true, help = "A.dims or flat; dtype and device as for A * x" },
    { "groups", "integer", min = 1, help = "parts; absent: by the work, some seconds of a computer or some " ..
        "hundredths of a second of a card each, in whole eights of sources" },
    { "max_bytes", "number", min = 1, help = "in place of groups: as few parts as keep model, data and work area of " ..
        "each within it (bytes); absent: no such limit" },
    { "checkpoint", "string", help = "an HDF5 file for what is done; absent: none is written" },
    { "checkpoint_seconds", "number", min = 0, help = "between checkpoints (s), which come after parts; 0: after " ..
        "each; absent: 30. What is stopped writes its own" },
    { "resume", "boolean", default = true, help = "go on from the checkpoint if it is there; false: begin anew" },
    { "progress", "boolean",
      help = "a line on the terminal with the time left, after two seconds; absent: when there is one" },
  },
  returns = "y, info: an array of A.dimsd where A gives it, and a table",
  source = "y = A x, of a stack over its data: y_i = A_i x forward, y = sum of A_i' x_i of its adjoint",
  errors = "operators without parts; groups and max_bytes together; a checkpoint of something else, or a damaged " ..
    "one; Ctrl-C, after what is done is in the checkpoint",
  call = function(o)
    if o.groups and o.max_bytes then
      schema.fail("apply", "argument 'max_bytes': expected one of 'groups' and 'max_bytes', got both")
    end
    if o.checkpoint_seconds and not o.checkpoint then
      schema.fail("apply", "argument 'checkpoint_seconds': there is no 'checkpoint' file to write")
    end
    local par = { groups = o.groups, max_bytes = o.max_bytes, checkpoint = o.checkpoint,
                  checkpoint_seconds = o.checkpoint_seconds or 30, resume = o.resume }
    par.progress = o.progress
    if o.progress == nil then par.progress = core.terminal() end
    return core.apply(o.A, o.x, par)
  end,
}

return M
