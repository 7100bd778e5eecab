return { html = function() return "" end }
