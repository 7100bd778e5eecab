-- What the prompt alone has: who(), reload(), edit(), and help() under a short name. They become globals there.
local schema = require "moho.schema"
local show = require "moho.show"

local prompt = {}
local own                                       -- names that were there before the user's

local function bytes_of(v)
  local kind = schema.kind_of(v)
  if kind == "array" and not v.freed then
    return v.nbytes, v.device, "(" .. table.concat(v.shape, ", ") .. ")", v.dtype
  end
  if kind == "operator" and not v.freed then return nil, v.device, v.title, v.dtype end
end

local function row(name, v)
  local kind = schema.kind_of(v)
  local bytes, device, shape, dtype = bytes_of(v)
  local what = kind
  if dtype then what = kind .. " " .. dtype end
  if kind == "string" then shape = ("%q"):format(#v > 30 and v:sub(1, 27) .. "..." or v) end
  if kind == "number" or kind == "boolean" or kind == "cdata" then shape = tostring(v) end
  if kind == "table" then
    local n = 0
    for _ in pairs(v) do n = n + 1 end
    shape = ("%d entr%s"):format(n, n == 1 and "y" or "ies")
  end
  return { name, what, shape or "", bytes and show.bytes(bytes) or "", device or "" }
end

prompt.who = schema.fn{
  name = "who", group = "prompt", positional = true,
  help = "Lists the variables of this session: name, kind, shape or value, bytes, device. _ is the last result, _1 " ..
    "to _9 those before it.",
  args = {}, returns = "nothing; it prints",
  call = function()
    local rows, width, total, seen = {}, { 0, 0, 0, 0, 0 }, 0, {}
    for name, v in pairs(_G) do
      if type(name) == "string" and not (own or {})[name] then
        rows[#rows + 1] = row(name, v)
        total = total + (not seen[v] and bytes_of(v) or 0)
        seen[v] = true
      end
    end
    table.sort(rows, function(a, b) return a[1] < b[1] end)
    for _, r in ipairs(rows) do for i, cell in ipairs(r) do width[i] = math.max(width[i], #cell) end end
    for _, r in ipairs(rows) do
      for i, cell in ipairs(r) do
        r[i] = i == 4 and (" "):rep(width[i] - #cell) .. cell or cell .. (" "):rep(width[i] - #cell)
      end
      print((table.concat(r, "  "):gsub("%s+$", "")))
    end
    if #rows == 0 then print "no variables yet" elseif total > 0 then print(("arrays: %s"):format(show.bytes(total))) end
  end,
}

prompt.reload = schema.fn{
  name = "reload", group = "prompt", positional = true,
  help = "Loads a module of your own again after its file changed. Where it gives a table, the table that is in use " ..
    "gets the new fields, so that variables that hold it see them.",
  args = { { "module", "string", need = true, help = "name as for require" } }, returns = "what the module gives",
  errors = "modules that are not found; errors in the file: the old module stays",
  call = function(name)
    local old = package.loaded[name]
    if name == "moho" or name:sub(1, 5) == "moho." then
      schema.fail("reload", "'%s' is part of the program; leave and start again", name)
    end
    package.loaded[name] = nil
    local ok, new = pcall(require, name)
    if not ok then
      package.loaded[name] = old
      schema.fail("reload", "%s", (tostring(new):gsub("\n.*", "")))
    end
    if type(old) ~= "table" or type(new) ~= "table" then return new end
    for k in pairs(old) do old[k] = nil end
    for k, v in pairs(new) do old[k] = v end
    setmetatable(old, getmetatable(new))
    package.loaded[name] = old
    return old
  end,
}

local function slurp(path)
  local f = io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  return text
end

prompt.edit = schema.fn{
  name = "edit", group = "prompt", positional = true,
  help = "Opens the last command, or a file, in the editor ($VISUAL, $EDITOR or vi) and runs what was saved.",
  args = { { "file", "string", help = "the file to edit and run; absent: the last command" } }, returns = "nothing",
  errors = "an editor that does not start or ends with an error: nothing is run",
  call = function(file)
    local path = file or os.tmpname()
    if not file then
      local f = assert(io.open(path, "wb"))
      f:write(prompt.last or "", "\n")
      f:close()
    end
    local editor = os.getenv "VISUAL" or os.getenv "EDITOR" or "vi"
    local ok = os.execute(editor .. " '" .. path:gsub("'", "'\\''") .. "'")
    local text = slurp(path)
    if not file then os.remove(path) end
    if ok ~= 0 or not text then
      schema.fail("edit", "%s did not end well: nothing was run; VISUAL or EDITOR names another editor", editor)
    end
    local f, err = loadstring(text, file and "@" .. file or "=edit")
    if not f then error(err, 0) end
    prompt.last = text
    f()
  end,
}

--- Makes them globals, where the user (a script before the prompt) has not taken the name.
function prompt.install(help)
  for name, f in pairs{ who = prompt.who, reload = prompt.reload, edit = prompt.edit, help = help } do
    if rawget(_G, name) == nil then rawset(_G, name, f) end
  end
end

--- What is global now is not the user's, but for what a script left.
function prompt.mark(names) own = names end

return prompt
